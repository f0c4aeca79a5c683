// relu: max(x, 0); the derivative at 0 is 0. A NaN stays one.
#pragma once

#include "../core/tape.h"

namespace keel {

/// max(x, 0), any shape.
Var relu(const Var& x);

}  // namespace keel
