// sigmoid: the logistic function 1 / (1 + exp(-x)).
#pragma once

#include "../core/tape.h"

namespace keel {

/// 1 / (1 + exp(-x)), any shape.
Var sigmoid(const Var& x);

}  // namespace keel
