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

/// What both hold, of what is in both; a where they differ by rounding.
inline Interval common(const Interval& a, const Interval& b) {
  const Interval both{std::max(a.low, b.low), std::min(a.high, b.high)};
  return both.low <= both.high ? both : a;
}

}  // namespace keel
