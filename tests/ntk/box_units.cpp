// Lines above and below activations, against dense scans.
#include "../../ntk/box_units.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "activations.h"

namespace keel {
namespace {

constexpr int kPoints = 2000;

std::vector<Activation> all_activations() {
  std::vector<Activation> all(kCurved.begin(), kCurved.end());
  for (const double slope : {0.0, 0.01, 0.5, 1.0, -0.3, 1.7})
    all.push_back(Activation::of_slope(slope));
  return all;
}

const std::vector<Interval> kIntervals = {
    {-1, 1},       {-0.1, 3},    {-7, 0.2},   {0, 1},        {-2, 0},     {0.3, 0.9},
    {-1e-9, 1e-9}, {-40, 35},    {-1e3, 1},   {-1.5, -1.4},  {25, 26},    {0, 0},
    {-3, -3},      {1e-8, 2e-8}, {-1e6, 1e6}, {-0.75, -0.7}, {700, 800.0}};

TEST_CASE("lines of an activation are never crossed, and touch it") {
  for (const Activation& phi : all_activations())
    for (const Interval& z : kIntervals) {
      CAPTURE(name_of(phi.kind));
      CAPTURE(phi.slope);
      CAPTURE(z.low);
      CAPTURE(z.high);
      const UnitLines lines = lines_of(phi, z);
      double above = kInfinity, below = kInfinity, up = kInfinity, down = kInfinity;
      for (int i = 0; i <= 2 * kPoints; ++i) {
        // Evenly apart, and closer together about 0, where curves bend.
        const double x = i < kPoints ? z.low + (z.high - z.low) * i / (kPoints - 1)
                                     : std::clamp(0.01 * (i - 1.5 * kPoints), z.low, z.high);
        const double of = phi(x), parallel = lines.slope * x + lines.middle;
        above = std::min(above, parallel + lines.radius - of);
        below = std::min(below, of - (parallel - lines.radius));
        up = std::min(up, lines.up_slope * x + lines.up - of);
        down = std::min(down, of - (lines.down_slope * x + lines.down));
      }
      const double size = std::max(std::abs(phi(z.low)), std::abs(phi(z.high)));
      const double rounding = 1e-13 * size;
      for (const double gap : {above, below, up, down}) {
        CHECK(gap >= -rounding);
        // Of curves a tolerance is left, 1% of their range.
        const Interval range = phi.range(z.low, z.high);
        CHECK(gap <= (phi.kinked() ? 0 : 0.011 * (range.high - range.low)) +
                         1e-8 * (size + z.high - z.low));
      }
    }
}

TEST_CASE("lines of a curve are near it however far it goes") {
  for (const LayerSpec& word : kCurved) {
    const Activation phi(word);
    CAPTURE(spec_text({word}));
    for (const double far : {1e30, 1e90}) {
      const double unit = 2 * (1 + phi.alpha) / std::min(phi.beta, 1.0);  // of values about 0
      CHECK(lines_of(phi, {-far, 3}).radius <= 0.52 * (3 * phi.above + unit));
      CHECK(lines_of(phi, {-3, far}).radius <= 0.02 * far);  // the tolerance, of the range
    }
  }
}

TEST_CASE("lines of a curve close in with the square of the interval") {
  for (const LayerSpec& word : kCurved) {
    const Activation phi(word);
    if (phi.is_elu() && phi.alpha != 1) continue;  // or has a kink, at which they do not
    CAPTURE(spec_text({word}));
    for (const double at : {-1.1, -0.4, 0.0, 0.3, 1.2}) {
      const double wide = lines_of(phi, {at - 0.1, at + 0.1}).radius;
      const double narrow = lines_of(phi, {at - 0.01, at + 0.01}).radius;
      // Of an interval of length h, h^2 / 8 times what phi'' is known to be at most.
      CHECK(narrow <= 5e-5 * std::max(1.0, phi.beta));
      CHECK(wide <= 5e-3 * std::max(1.0, phi.beta));
    }
  }
}

TEST_CASE(
    "lines of two lines: where one alone is left they are it, and else no further than they must") {
  for (const double slope : {0.0, 0.25, -0.5, 1.5}) {
    const Activation phi = Activation::of_slope(slope);
    CHECK(lines_of(phi, {0, 3}).radius == 0);
    CHECK(lines_of(phi, {0, 3}).slope == 1);
    CHECK(lines_of(phi, {-3, 0}).radius == 0);
    CHECK(lines_of(phi, {-3, 0}).slope == slope);
    const UnitLines both = lines_of(phi, {-1, 3});
    CHECK(both.slope == doctest::Approx((3 + slope) / 4));
    CHECK(both.radius == doctest::Approx(3 * std::abs(1 - slope) / 8).epsilon(1e-6));
    CHECK((slope < 1 ? both.down_slope : both.up_slope) == 1);
    const UnitLines low = lines_of(phi, {-3, 1});
    CHECK((slope < 1 ? low.down_slope : low.up_slope) == slope);
  }
}

}  // namespace
}  // namespace keel
