// The largest value of one unit where no end of its interval hides what is between.
#include "../../ntk/scalar_maximum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "activations.h"

namespace keel {
namespace {

// With both ends made equal by sigma, a bound that takes a second derivative too small is below the
// maximum: at once where the tolerance is so wide that the first cell's bound is the answer.
void check_between(ScalarProblem problem) {
  problem.sigma += (value_at(problem, problem.high) - value_at(problem, problem.low)) /
                   (problem.high - problem.low);
  double largest = value_at(problem, problem.low), size = 1;
  for (int i = 0; i <= 20000; ++i) {
    const double value = value_at(problem, problem.low + (problem.high - problem.low) * i / 20000);
    largest = std::max(largest, value);
    size = std::max(size, std::abs(value));
  }
  for (const double tolerance : {1e-7, 3e-3, 100.0}) {
    CAPTURE(tolerance);
    CHECK(scalar_maximum(problem, tolerance).value >= largest - 1e-12 * size);
  }
}

TEST_CASE("scalar_maximum: bends of every term, on cells that begin and end alike") {
  for (const LayerSpec& phi : kCurved)
    for (double low : {-6.0, -3.0, -2.0, -1.5, -0.75, -0.3, 0.0, 0.5, 1.5, 2.5, 5.0})
      for (double width : {0.25, 0.75, 1.5, 4.0})
        for (double sign : {-1.0, 1.0}) {
          CAPTURE(spec_text({phi}));
          CAPTURE(low);
          CAPTURE(width);
          CAPTURE(sign);
          check_between({.phi = phi, .w = sign, .low = low, .high = low + width});
          check_between({.phi = phi, .theta = sign, .low = low, .high = low + width});
          check_between({.phi = phi, .cross = sign, .low = low, .high = low + width});
          for (double origin : {-20.0, 20.0})
            check_between({.phi = phi,
                           .cross = sign,
                           .origin = origin,
                           .low = low - origin,
                           .high = low - origin + width});
        }
}

TEST_CASE("scalar_maximum: of a unit that nothing takes, the parabola that is left") {
  for (const LayerSpec& phi : kCurved) {
    const ScalarMaximum top =
        scalar_maximum({.phi = phi, .sigma = -3, .kappa = 2, .low = -1, .high = 5}, 0);
    CHECK(top.value == 1.125);  // 3 y - 2 y^2
    CHECK(top.y == 0.75);
    const ScalarMaximum end =
        scalar_maximum({.phi = phi, .sigma = -3, .kappa = -2, .low = -1, .high = 5}, 0);
    CHECK(end.value == 65);
    CHECK(end.y == 5);
  }
}

TEST_CASE("scalar_maximum: where squares of z leave double") {
  for (const LayerSpec& phi : kCurved)
    for (double size : {1e150, 1e153, 1e154, 1e155, 1e200}) {
      if (bounds_units(phi.kind) || phi.kind == LayerKind::selu)
        continue;  // not z where it is large
      CAPTURE(spec_text({phi}));
      CAPTURE(size);
      // phi(z) / size is z / size, as z is 5 to 15 of these, and 10 + 5 y - y (4 + 2 y) most at 1/4
      const ScalarProblem problem{.phi = phi,
                                  .w = 1 / size,
                                  .sigma = 4,
                                  .kappa = 2,
                                  .origin = 10 * size,
                                  .scale = 5 * size};
      const double value = scalar_maximum(problem, 1e-6).value;
      CHECK(value >= 10.125);
      CHECK(value <= 10.126);
    }
}

TEST_CASE("scalar_maximum: what leaves double is no maximum") {
  for (LayerKind phi :
       {LayerKind::relu, LayerKind::leakyrelu, LayerKind::gelu, LayerKind::silu, LayerKind::elu}) {
    CAPTURE(static_cast<int>(phi));
    // phi (1 + 1e200 phi - 1e200 y), which is y far out: in double a difference of infinities.
    const ScalarProblem problem{
        .phi = phi, .w = 1, .theta = 1e200, .cross = 1e200, .low = 0, .high = 1e200};
    CHECK_FALSE(scalar_maximum(problem, 1e-6).value < 0.99e200);
  }
}

}  // namespace
}  // namespace keel
