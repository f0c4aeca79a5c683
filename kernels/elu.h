// elu: x, and below 0 exp(x) - 1: a relu that goes on to -1 without a corner.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x where it is above 0, else exp(x) - 1; any shape. Clevert, Unterthiner and Hochreiter (2016),
/// of alpha = 1. Its derivative is made of the value: exact to a rounding of 1, not of itself.
Var elu(const Var& x);

}  // namespace keel
