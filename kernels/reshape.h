// reshape: the same elements, seen as another shape.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x in a shape of as many elements, which it shares. Its derivative is d_out, reshaped back.
/// Throws ShapeError where their numbers differ.
Var reshape(const Var& x, Shape shape);

}  // namespace keel
