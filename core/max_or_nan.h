// The larger of two errors, where a NaN is the worst there is.
#pragma once

#include <cmath>

namespace keel {

/// NaN where either is: std::max(a, b) is a where b is NaN, and a check of the result passes.
inline double max_or_nan(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

}  // namespace keel
