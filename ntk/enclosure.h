// Arithmetic of numbers that are known to lie between two others, and not to be negative.
#pragma once

#include <algorithm>
#include <cmath>

#include "interval.h"

namespace keel {

/// What lies between lo and hi, 0 <= lo <= hi <= infinity.
struct Enclosure {
  double lo = 0, hi = 0;
};

/// What lies in both.
inline Enclosure both(Enclosure a, Enclosure b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

/// The part of it that a share may be: a quotient of two enclosures, each with an end of its own,
/// may pass 1.
inline Enclosure share_of(Enclosure a) { return both(a, {0, 1}); }

inline Enclosure operator+(Enclosure a, Enclosure b) { return {a.lo + b.lo, a.hi + b.hi}; }
inline Enclosure operator*(double s, Enclosure a) { return {s * a.lo, s * a.hi}; }

/// 0 times infinity and 0 / 0 may be anything.
inline Enclosure operator*(Enclosure a, Enclosure b) {
  const double hi = a.hi * b.hi, lo = a.lo * b.lo;
  return {std::isnan(lo) ? 0 : lo, std::isnan(hi) ? kInfinity : hi};
}
inline Enclosure operator/(Enclosure a, Enclosure b) {
  const double hi = a.hi / b.lo, lo = a.lo / b.hi;
  return {std::isnan(lo) ? 0 : lo, std::isnan(hi) ? kInfinity : hi};
}

}  // namespace keel
