// leaky_relu: x, and below 0 slope x, where the derivative is slope, as at 0. A NaN stays one.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x where it is above 0, else slope x; any shape. 0 <= slope <= 1. Maas, Hannun and Ng (2013).
Var leaky_relu(const Var& x, double slope = 0.01);

}  // namespace keel
