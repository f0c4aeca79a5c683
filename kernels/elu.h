// elu: x, and below 0 alpha (exp(x) - 1). selu: one of these, scaled.
#pragma once

#include "../core/tape.h"

namespace keel {

/// What keeps values of mean 0 and variance 1 at these, layer after layer of normal weights.
inline constexpr double kSeluAlpha = 1.6732632423543772, kSeluScale = 1.0507009873554805;

/// x where it is above 0, else alpha (exp(x) - 1); any shape. Clevert, Unterthiner and Hochreiter
/// (2016). Its derivative is made of the value: exact to a rounding of alpha, not of itself; at 0
/// it is alpha. Throws keel::Error unless alpha is from 0 to 100.
Var elu(const Var& x, double alpha = 1);

/// kSeluScale elu(x, kSeluAlpha); any shape. Klambauer, Unterthiner, Mayr and Hochreiter (2017).
Var selu(const Var& x);

}  // namespace keel
