// What an interval's ends tell.
#pragma once

#include <algorithm>
#include <cmath>

#include "interval.h"

namespace keel {

inline double half_of(const Interval& interval) { return 0.5 * (interval.high - interval.low); }
inline double middle_of(const Interval& interval) { return interval.low + half_of(interval); }

/// The least and the most of |x|.
inline double least_of(const Interval& interval) {
  return interval.low > 0 ? interval.low : interval.high < 0 ? -interval.high : 0;
}
inline double most_of(const Interval& interval) {
  return std::max(std::abs(interval.low), std::abs(interval.high));
}

}  // namespace keel
