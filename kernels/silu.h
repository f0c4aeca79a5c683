// silu: x / (1 + exp(-x)), also called swish.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x / (1 + exp(-x)), any shape. Elfwing, Uchibe and Doya (2018), eq. 6.
Var silu(const Var& x);

}  // namespace keel
