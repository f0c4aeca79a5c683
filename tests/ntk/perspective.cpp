// Planes above and below t phi(z / t) and phi(z / t), against dense scans, up to t = 0.
#include "../../ntk/perspective.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "activations.h"

namespace keel {
namespace {

constexpr int kSide = 120;

const std::vector<Interval> kOfZ = {{-1, 1},    {-0.1, 3},  {0.2, 0.7},   {-5, -2},
                                    {-1e-3, 0}, {0, 0.02},  {-1e-9, 1e9}, {0.3, 0.3},
                                    {0, 0},     {-40, 1e3}, {1e-6, 1},    {-2, -1e-5}};
const std::vector<Interval> kOfT = {{0, 1},    {0, 1e-3},     {0.5, 1},    {0.9, 0.91}, {1, 1},
                                    {1e-3, 1}, {1e-12, 2e-9}, {0, 1e-200}, {0.01, 0.02}};

// Of both: closer together at the lower end, where t may be 0.
double between(const Interval& of, int i) {
  const double part = static_cast<double>(i) / kSide;
  return std::clamp(of.low + (of.high - of.low) * part * part * part, of.low, of.high);
}

double perspective_at(const Activation& phi, double z, double t) {
  const double u = z == 0 ? 0 : z / t;
  return std::abs(u) < 1e6 ? t * phi(u)
                           : phi.above * std::max(z, 0.0) - (z < 0 ? phi.alpha * t : 0);
}

const Interval kAll{-kInfinity, kInfinity};

struct Gaps {  // the least distances from what there is, and the size of it
  double above = kInfinity, below = kInfinity, up = kInfinity, down = kInfinity;
  double range_above = kInfinity, range_below = kInfinity, size = 0;
};

// Where z / t is in u.
template <class Value>
Gaps gaps_of(const UnitPlanes& planes, const Interval& range, const Interval& z, const Interval& u,
             const Interval& t, const Value& value) {
  Gaps gaps;
  const UnitLines& of = planes.of_z;
  for (int i = 0; i <= kSide; ++i)
    for (int j = 0; j <= 2 * kSide; ++j) {
      const double s = between(t, i);
      // About 0 as closely as t is small.
      const double x =
          j <= kSide ? between(z, j) : std::clamp(s * 0.2 * (j - 1.5 * kSide), z.low, z.high);
      if (x < u.low * s || x > u.high * s) continue;
      const double f = value(x, s), parallel = of.slope * x + planes.last * s + of.middle;
      const double radius = of.radius + planes.radius_last * s;
      gaps.above = std::min(gaps.above, parallel + radius - f);
      gaps.below = std::min(gaps.below, f - (parallel - radius));
      gaps.up = std::min(gaps.up, of.up_slope * x + planes.up_last * s + of.up - f);
      gaps.down = std::min(gaps.down, f - (of.down_slope * x + planes.down_last * s + of.down));
      gaps.range_above = std::min(gaps.range_above, range.high - f);
      gaps.range_below = std::min(gaps.range_below, f - range.low);
      gaps.size = std::max({gaps.size, std::abs(f), std::abs(of.slope * x)});
    }
  return gaps;
}

void check_gaps(const Gaps& gaps) {
  for (const double gap :
       {gaps.above, gaps.below, gaps.up, gaps.down, gaps.range_above, gaps.range_below})
    CHECK(gap >= -1e-13 * gaps.size);
}

TEST_CASE("perspective: planes of t phi(z / t) are never crossed, nor its range left") {
  std::vector<Activation> all;
  for (const LayerSpec& word : kCurved)
    if (!bounds_units(word.kind)) all.emplace_back(word);
  for (const double slope : {0.0, 0.3, -0.5, 1.7}) all.push_back(Activation::of_slope(slope));
  for (std::size_t which = 0; which < all.size(); ++which)
    for (const Interval& z : kOfZ)
      for (const Interval& t : kOfT) {
        CAPTURE(which);
        const Activation& phi = all[which];
        CAPTURE(z.low);
        CAPTURE(z.high);
        CAPTURE(t.low);
        CAPTURE(t.high);
        const auto at = [&](double x, double s) {
          return phi.kinked() ? phi(x) : perspective_at(phi, x, s);
        };
        for (const double part : {1.0, 0.7, 0.2}) {  // of z / t more may be known
          CAPTURE(part);
          Interval u = quotient(z, t);
          if (part < 1) u = {std::max(part * u.low, -1e9), std::min(part * u.high, 2.0)};
          if (!(u.low <= u.high)) continue;
          check_gaps(gaps_of(planes_of_perspective(phi, z, u, t),
                             range_of_perspective(phi, z, u, t), z, u, t, at));
        }
        const Interval u = quotient(z, t), range = range_of_perspective(phi, z, u, t);
        const Gaps gaps = gaps_of(planes_of_perspective(phi, z, u, t), range, z, u, t, at);
        CHECK(gaps.range_above <= 1e-8 * (gaps.size + std::abs(z.high)));
      }
}

TEST_CASE("perspective: planes of t phi(z / t) of a tanh or a sigmoid, where z / t has ends") {
  for (const LayerKind kind : {LayerKind::tanh, LayerKind::sigmoid})
    for (const Interval& u : {Interval{-3, 5}, {0.1, 0.2}, {-1e4, -1}, {2, 2}})
      for (const Interval& t : kOfT) {
        CAPTURE(u.low);
        CAPTURE(t.low);
        const Activation phi(kind);
        const Interval z{u.low * (u.low < 0 ? t.high : t.low), u.high * t.high};
        const Gaps gaps =
            gaps_of(planes_of_perspective(phi, z, u, t), range_of_perspective(phi, z, u, t), z, u,
                    t, [&](double x, double s) { return s * phi(x == 0 ? 0 : x / s); });
        check_gaps(gaps);
        // Of few points near the end, of so long an interval.
        if (u.low > -1e3) CHECK(gaps.range_above <= 0.02 * t.high + 1e-8 * gaps.size);
      }
}

TEST_CASE("perspective: planes of phi(z / t) are never crossed") {
  for (const LayerKind kind : {LayerKind::tanh, LayerKind::sigmoid})
    for (const Interval& z : kOfZ)
      for (const Interval& t : kOfT) {
        CAPTURE(kind == LayerKind::tanh);
        CAPTURE(z.low);
        CAPTURE(z.high);
        CAPTURE(t.low);
        CAPTURE(t.high);
        const Activation phi(kind);
        const Interval u = quotient(z, t), range = phi.range(u.low, u.high);
        // Of z = 0 and t = 0, whatever is near.
        const Gaps gaps = gaps_of(planes_of_quotient(phi, z, t), range, z, kAll, t,
                                  [&](double x, double s) { return phi(x == 0 ? 0 : x / s); });
        check_gaps(gaps);
        CHECK(gaps.range_above <= 1e-8 + (t.low > 0.4 ? 0.01 : 0.0));
      }
}

TEST_CASE(
    "perspective: planes close in with the square of a box, at t = 0 as far as phi is lines") {
  for (const LayerSpec& word : kCurved) {
    const Activation phi(word);
    if (phi.is_elu() && phi.alpha != 1) continue;  // or has a kink
    CAPTURE(spec_text({word}));
    const auto radius = [&](double half) {
      const Interval z{0.3 - half, 0.3 + half}, t{0.4 - half, 0.4 + half};
      return (bounds_units(word.kind) ? planes_of_quotient(phi, z, t)
                                      : planes_of_perspective(phi, z, quotient(z, t), t))
          .of_z.radius;
    };
    CHECK(radius(0.03) <= 0.05 * std::max(1.0, phi.beta));
    CHECK(radius(0.003) <= radius(0.03) / 50 + 1e-9);
    if (bounds_units(word.kind)) {
      CHECK(planes_of_quotient(phi, {0.3, 0.4}, {0, 0.01}).of_z.radius <= 2e-9);
      CHECK(planes_of_quotient(phi, {-0.1, 0.4}, {0, 0.01}).of_z.radius <= 1 + 1e-8);
      continue;
    }
    for (const Interval& z : {Interval{0.3, 0.4}, Interval{-0.4, -0.3}}) {
      const UnitPlanes planes = planes_of_perspective(phi, z, quotient(z, {0, 0.001}), {0, 0.001});
      CHECK(planes.of_z.radius <= 1e-8);
      CHECK(planes.of_z.slope == (z.low > 0 ? phi.above : 0));
      CHECK(planes.last == doctest::Approx(z.low < 0 && phi.is_elu() ? -phi.alpha : 0));
    }
  }
}

TEST_CASE("quotient: of ends that are 0, or none of whose quotients is a number") {
  const auto is = [](const Interval& of, double low, double high) {
    CHECK(of.low == doctest::Approx(low));
    CHECK(of.high == doctest::Approx(high));
  };
  is(quotient({-2, 3}, {0.5, 4}), -4, 6);
  is(quotient({2, 3}, {0.5, 4}), 0.5, 6);
  is(quotient({-3, -2}, {0.5, 4}), -6, -0.5);
  CHECK(quotient({-1, 0}, {0, 1}).low == -kInfinity);
  CHECK(quotient({-1, 0}, {0, 1}).high == 0);
  CHECK(quotient({0, 1e-3}, {0, 1}).low == 0);
  CHECK(quotient({0, 1e-3}, {0, 1}).high == kInfinity);
  CHECK(quotient({0, 0}, {0, 1}).high == 0);
}

}  // namespace
}  // namespace keel
