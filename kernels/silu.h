// silu: x / (1 + exp(-beta x)), also called swish.
#pragma once

#include "../core/tape.h"

namespace keel {

/// What beta may be: silu is x / 2 where it is 0, and tends to relu as it grows.
inline constexpr double kLeastSiluBeta = 0.01, kMostSiluBeta = 100;

/// x / (1 + exp(-beta x)), any shape. Elfwing, Uchibe and Doya (2018), eq. 6; with beta
/// Ramachandran, Zoph and Le (2017). Throws keel::Error unless beta is from 0.01 to 100.
Var silu(const Var& x, double beta = 1);

}  // namespace keel
