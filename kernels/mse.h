// mse: mean squared error.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Mean over all elements of (prediction - target)^2: [n, o] -> []; with an ensemble axis per
/// member: [S, n, o] -> [S], the target being [S, n, o], or [n, o] for all members. The target is a
/// constant. Throws ShapeError where there are no elements.
Var mse(const Var& prediction, const Tensor& target);

}  // namespace keel
