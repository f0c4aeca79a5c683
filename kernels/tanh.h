// tanh: the hyperbolic tangent.
#pragma once

#include "../core/tape.h"

namespace keel {

/// tanh(x), any shape.
Var tanh(const Var& x);

}  // namespace keel
