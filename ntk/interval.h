// An interval of real numbers, whose ends may be infinite.
#pragma once

#include <limits>

namespace keel {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Interval {
  double low = 0, high = 0;
};

}  // namespace keel
