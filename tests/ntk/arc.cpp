// Quadratics on the half circle, and forms of two: what they are at most, against points.
#include "../../ntk/arc.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "naive_tail.h"

namespace keel {
namespace {

Angle angle_of(double radians) { return {std::sin(radians), std::cos(radians)}; }

TEST_CASE("arc: between two of its angles no quadratic is above what it says, nor anywhere") {
  constexpr int kFine = 32;
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Vector r = draws(5, seed);
    // also where one kind of term is nearly all there is
    const double linear = seed % 4 == 1 ? 1e-3 : 1, square = seed % 4 == 2 ? 1e-3 : 1;
    const OnArc arc{linear * r[0], linear * r[1], square * r[2], square * r[3], square * r[4]};
    CAPTURE(seed);
    const double rounded = 1e-14 * (std::abs(arc.p) + std::abs(arc.r) + std::abs(arc.a) +
                                    std::abs(arc.b) + std::abs(arc.c));
    double excess = 0;
    for (int part = 0; part < kAngles; ++part) {
      const auto at = static_cast<std::size_t>(part);
      const double ends = std::max(arc.at(angles()[at]), arc.at(angles()[at + 1]));
      CHECK(angles()[at].cos >= -1e-15);
      for (int i = 0; i <= kFine; ++i) {
        const double radians = kAngleStep * (part + double{1} * i / kFine) - std::numbers::pi / 2;
        const double value = arc.at(angle_of(radians));
        excess = std::max(excess, value - ends);
        CHECK(value <= arc.at_most() + rounded);
      }
    }
    CHECK(excess <= arc.between() + rounded);
    closest = std::max(closest, excess / arc.between());
  }
  CHECK(closest > 0.5);
}

TEST_CASE("arc: a form of two unit vectors is at most its larger singular value, where it says") {
  constexpr int kSteps = 720;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Vector r = draws(4, seed);
    if (seed % 5 == 1) r[3] = r[1] * r[2] / r[0];      // of rank 1
    if (seed % 5 == 2) r = {r[0], r[1], -r[1], r[0]};  // a rotation: the same all around
    if (seed % 5 == 3) r = {r[0], r[1], r[1], -r[0]};
    const double size = seed % 3 == 1 ? 1e-150 : seed % 3 == 2 ? 1e150 : 1;
    const OfTwoArcs form{size * r[0], size * r[1], size * r[2], size * r[3]};
    CAPTURE(seed);
    const auto at = [&](const Angle& x, const Angle& y) {
      return x.sin * (form.a * y.sin + form.b * y.cos) + x.cos * (form.c * y.sin + form.d * y.cos);
    };
    double largest = 0;
    for (int i = 0; i < kSteps; ++i) {
      const Angle x = angle_of(2 * std::numbers::pi * i / kSteps);
      const double across = std::hypot(x.sin * form.a / size + x.cos * form.c / size,
                                       x.sin * form.b / size + x.cos * form.d / size);
      largest = std::max(largest, across * size);  // the best y, in closed form
    }
    CHECK(form.at_most() >= largest * (1 - 1e-14));
    CHECK(form.at_most() <= largest * (1 + 1e-4));
    const auto [x, y] = form.where();
    CHECK(at(x, y) == doctest::Approx(form.at_most()).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace keel
