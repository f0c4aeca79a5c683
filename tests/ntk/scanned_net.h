// Nets' outputs by dense scans, beside what boxes prove of them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>

#include "../../ntk/net_bound.h"
#include "dual_problem.h"

namespace keel {

inline constexpr std::int64_t kBoxes = 20000;

// f's least and largest at `count` points.
template <class Point>
Interval scanned(const Net& net, int count, const Point& point) {
  Vector all;
  for (int i = 0; i < count; ++i)
    for (const double x : point(i)) all.push_back(x);
  const Vector f = net.predict(Tensor::from(all, {count, net.input_width()})).to_vector<double>();
  Interval found{f[0], f[0]};
  for (const double value : f) found = {std::min(found.low, value), std::max(found.high, value)};
  return found;
}

inline void check_closed(const NetBound& bound, const Interval& found) {
  REQUIRE(bound.bounded);
  CHECK(bound.closed);
  CHECK(bound.boxes > 0);
  const Interval proved = bound.outputs[0];
  const double width = found.high - found.low;
  CHECK(proved.high >= found.high - 1e-12);
  CHECK(proved.low <= found.low + 1e-12);
  CHECK(proved.high - found.high <= 4e-3 * width);
  CHECK(found.low - proved.low <= 4e-3 * width);
}

}  // namespace keel
