// How far the units behind a norm go: the largest of a linear map over a set, which is reached.
#include "../../ntk/first_units.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "naive_tail.h"

namespace keel {
namespace {

// Some u of the set, but for its cone, nearly all of length 1; empty where the draw is outside.
Vector point_of(const NormSet& set, std::uint64_t seed) {
  Vector u = draws(static_cast<std::size_t>(set.rank) + 1, seed);
  const double size = seed % 8 == 0 ? std::abs(std::sin(u.back())) : 1;
  u.pop_back();
  const double length = std::sqrt(dot(u, u));
  for (double& value : u) value *= size / length;
  if (set.half && !(u.back() >= set.last.low && u.back() <= set.last.high)) return {};
  if (!set.side.empty() && dot(u, set.side) < -set.beyond) return {};
  return u;
}

TEST_CASE("first_units: what a linear map makes of a set ends where its points do") {
  constexpr std::size_t kRank = 3, kRows = 12;
  for (const bool half : {false, true})
    for (const double beyond : {-1.0, 0.0, 0.1, 0.5}) {  // below 0: no side
      CAPTURE(half);
      CAPTURE(beyond);
      NormSet set;
      set.width = 4;
      set.rank = kRank;
      set.half = half;
      set.last = {0.2, 0.7};
      if (beyond >= 0) {
        set.side = half ? Vector{0, 0.8, -0.6} : Vector{0.6, 0, 0.8};
        set.beyond = beyond;
      }
      Affine map{kRows, kRank, draws(kRows * kRank, 3), draws(kRows, 4)};
      // against the side, where what is known of it counts most
      for (std::size_t k = 0; k < kRank && beyond >= 0; ++k)
        map.weight[k] = -set.side[k] + 0.1 * map.weight[k];
      const std::vector<Interval> intervals = linear_intervals(map, set);
      REQUIRE(intervals.size() == kRows);
      std::vector<Interval> found(kRows, {kInfinity, -kInfinity});
      for (std::uint64_t seed = 0; seed < 160000; ++seed) {
        const Vector u = point_of(set, seed);
        if (u.empty()) continue;
        const Vector values = affine_at(map, u);
        for (std::size_t i = 0; i < kRows; ++i)
          found[i] = {std::min(found[i].low, values[i]), std::max(found[i].high, values[i])};
      }
      for (std::size_t i = 0; i < kRows; ++i) {
        CAPTURE(i);
        const double width = intervals[i].high - intervals[i].low;
        CHECK(found[i].high <= intervals[i].high);
        CHECK(found[i].low >= intervals[i].low);
        CHECK(found[i].high >= intervals[i].high - 0.03 * width);
        CHECK(found[i].low <= intervals[i].low + 0.03 * width);
      }
    }
}

}  // namespace
}  // namespace keel
