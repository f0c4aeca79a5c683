// Moments of activations against quadrature in long double. Of those that the logistic function's
// mixture is for: logistic_mixture.cpp.
#include "../../kernels/gaussian_moments.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "quadrature.h"

using namespace keel;
using quadrature::near;

namespace {

constexpr double kCorrelations[] = {-1,       -1 + 1e-15, -1 + 1e-9, -0.7, -0.001,
                                    0,        1e-20,      0.3,       0.95, 1 - 1e-6,
                                    1 - 1e-9, 1 - 1e-12,  1 - 1e-15, 1};

struct Variances {
  double q1, q2;
};
constexpr Variances kVariances[] = {{1, 1},      {0.37, 2.9},  {1e-6, 1e-6}, {1e-8, 30},
                                    {1e4, 0.02}, {1e8, 1.3e8}, {1e30, 1e30}};

double over(double q, double s) { return 1 / (q + s * s); }

// What a moment is measured by: its size where the inputs are parallel.
double size_of_value(const Variances& v) { return std::sqrt(v.q1) * std::sqrt(v.q2); }

}  // namespace

TEST_CASE("upper_angle: 5e-16 of atan2 in every octant, at any size") {
  double worst = 0;
  for (double size : {1e-200, 1.0, 1e200})
    for (double degrees = 0; degrees <= 180; degrees += 0.0137) {
      const double y = size * std::max(0.0, std::sin(degrees / 57.3)),
                   x = size * std::cos(degrees / 57.3);
      const long double exact =
          std::atan2(static_cast<long double>(y), static_cast<long double>(x));
      worst = max_or_nan(worst, static_cast<double>(std::abs(upper_angle(y, x) - exact)));
    }
  CHECK(worst < 5e-16);
  CHECK(upper_angle(0, 1) == 0);
  CHECK(upper_angle(0, -1) == std::acos(-1.0));
  CHECK(upper_angle(1, 0) == std::acos(0.0));
  // Relative accuracy where the angle is small.
  for (double y : {1e-300, 1e-16, 1e-3})
    CHECK(upper_angle(y, 1) == doctest::Approx(std::atan(y)).epsilon(1e-15));
  CHECK(std::isnan(upper_angle(std::numeric_limits<double>::quiet_NaN(), 1)));
}

TEST_CASE("relu moments agree with quadrature to 1e-10, near-parallel inputs included") {
  for (const Variances& v : kVariances)
    for (double rho : kCorrelations) {
      const double k = rho * size_of_value(v);
      if (quadrature::determinant(v.q1, v.q2, k) < 0) continue;  // rounded beyond parallel
      CAPTURE(v.q1);
      CAPTURE(v.q2);
      CAPTURE(rho);
      const quadrature::Moments exact(0, 0, v.q1, v.q2, k);
      const Moments m = relu_moments(v.q1, v.q2, k);
      near(m.value, exact.value, 1e-10 * size_of_value(v));
      near(m.slope, exact.slope, 1e-10);
      near(m.cross, exact.cross, 1e-10 * size_of_value(v));
    }
}

TEST_CASE("moments of gelu and of what silu is mixed from agree with quadrature to 1e-10") {
  for (const Variances& v : kVariances)
    for (double rho : kCorrelations)
      for (const std::pair<double, double>& scales :
           {std::pair{1.0, 1.0}, {0.0, 1.0}, {0.73, 4.2}}) {
        const double s = scales.first, t = scales.second;
        const double k = rho * size_of_value(v);
        if (quadrature::determinant(v.q1, v.q2, k) < 0) continue;
        CAPTURE(v.q1);
        CAPTURE(v.q2);
        CAPTURE(rho);
        CAPTURE(s);
        CAPTURE(t);
        const quadrature::Moments exact(s, t, v.q1, v.q2, k);
        const Moments m = mixture_moments<true>(Form::product, v.q1, {s * s, over(v.q1, s)}, v.q2,
                                                {t * t, over(v.q2, t)}, k);
        near(m.value, exact.value, 1e-10 * size_of_value(v));
        near(m.slope, exact.slope, 1e-10);
        near(m.cross, exact.cross, 1e-10 * std::max(size_of_value(v), 1e-4));
        const Moments without = mixture_moments<false>(Form::product, v.q1, {s * s, over(v.q1, s)},
                                                       v.q2, {t * t, over(v.q2, t)}, k);
        CHECK(without.value == m.value);
        CHECK(without.slope == m.slope);
      }
}

TEST_CASE("leaky relu's moments agree with quadrature of relu's") {
  for (const Variances& v : kVariances)
    for (double rho : kCorrelations)
      for (double leak : {0.0, 0.01, 0.3, 1.0}) {
        const double k = rho * size_of_value(v);
        if (quadrature::determinant(v.q1, v.q2, k) < 0) continue;
        CAPTURE(v.q1);
        CAPTURE(v.q2);
        CAPTURE(rho);
        CAPTURE(leak);
        // u relu(u') and relu'(u) by hand; u u' is k
        const quadrature::Moments relu(0, 0, v.q1, v.q2, k);
        const long double left = 1 - static_cast<long double>(leak), half = k / 2.0L;
        const long double value = left * left * relu.value + 2 * left * leak * half +
                                  leak * static_cast<long double>(leak) * k;
        const long double slope =
            left * left * relu.slope + left * leak + leak * static_cast<long double>(leak);
        const Moments m = leaky_moments(relu_moments(v.q1, v.q2, k), leak, v.q1, v.q2, k);
        near(m.value, value, 1e-10 * size_of_value(v));
        near(m.cross, value, 1e-10 * size_of_value(v));
        near(m.slope, slope, 1e-10);
      }
}

TEST_CASE(
    "what tanh is mixed from agrees with quadrature in the plane, and small numbers keep their "
    "digits") {
  for (const Variances& of : {Variances{1, 1}, {0.37, 2.9}, {3, 0.02}})
    for (double rho : {-0.9, -0.4, 0.0, 0.3, 0.95})
      for (const std::pair<double, double>& scales : {std::pair{1.0, 1.0}, {0.6, 2.1}}) {
        const double q1 = of.q1, q2 = of.q2;
        const double s = scales.first, t = scales.second, k = rho * std::sqrt(q1 * q2);
        CAPTURE(q1);
        CAPTURE(rho);
        CAPTURE(s);
        const auto at = [](long double u, long double scale) {
          const long double slope = 2 * quadrature::density(u / scale) / scale;
          return quadrature::Triple{2 * quadrature::distribution(u / scale) - 1, slope, u * slope};
        };
        const quadrature::Triple exact =
            quadrature::plane_mean(q1, q2, k, [&, s = s, t = t](long double u, long double v) {
              const quadrature::Triple a = at(u, s), b = at(v, t);
              return quadrature::Triple{a.value * b.value, a.slope * b.slope, a.cross * b.cross};
            });
        const Moments m = mixture_moments<true>(Form::distribution, q1, {s * s, over(q1, s)}, q2,
                                                {t * t, over(q2, t)}, k);
        near(m.value, exact.value, 1e-10);
        near(m.slope, exact.slope, 1e-10);
        near(m.cross, exact.cross, 1e-10);
        const Moments without = mixture_moments<false>(Form::distribution, q1, {s * s, over(q1, s)},
                                                       q2, {t * t, over(q2, t)}, k);
        CHECK(without.value == m.value);
        CHECK(without.slope == m.slope);
        CHECK(without.cross == 0);
      }
  // Near 0 it is a line of slope 2 / (s sqrt(2 pi)); far out a sign.
  for (double q : {1e-200, 1e-30, 1e-9}) {
    const Moments m =
        mixture_moments<true>(Form::distribution, q, {1, over(q, 1)}, q, {1, over(q, 1)}, -0.5 * q);
    CHECK(m.value == doctest::Approx(-0.5 * q * 4 * 0.15915494309189535).epsilon(1e-8));
    CHECK(m.cross == doctest::Approx(m.value).epsilon(1e-8));
  }
  const Moments far = mixture_moments<true>(Form::distribution, 1e30, {1, over(1e30, 1)}, 1e30,
                                            {1, over(1e30, 1)}, -0.5e30);
  CHECK(far.value == doctest::Approx(-1.0 / 3).epsilon(1e-12));
}

TEST_CASE("gelu's mean agrees with quadrature") {
  for (double q : {1e-9, 0.4, 1.0, 77.0, 1e10}) {
    CAPTURE(q);
    const long double gelu = quadrature::normal_mean([&](long double g) {
      const long double u = std::sqrt(static_cast<long double>(q)) * g;
      return u * quadrature::distribution(u);
    });
    CHECK(mixture_mean(Form::product, q, {1, over(q, 1)}) ==
          doctest::Approx(static_cast<double>(gelu)).epsilon(1e-12));
  }
}

TEST_CASE("moments of inputs that are 0") {
  for (double q : {0.0, 1.0, 1e30}) {
    const Moments relu = relu_moments(0, q, 0);
    CHECK(relu.value == 0);
    CHECK(relu.slope == 0);  // as relu'(0) = 0 has it
    const Moments gelu = mixture_moments<true>(Form::product, 0, {1, 1}, q, {1, over(q, 1)}, 0);
    CHECK(gelu.value == 0);
    CHECK(gelu.slope == doctest::Approx(0.25));
    CHECK(std::abs(gelu.cross) < 1e-15);
    const Moments leaky = leaky_moments(relu, 0.25, 0, q, 0);
    CHECK(leaky.value == 0);
    CHECK(leaky.slope == doctest::Approx(0.25 * (q == 0 ? 0.25 : 0.625)));  // leaky'(0) = 0.25
    const Moments odd = mixture_moments<true>(Form::distribution, 0, {1, 1}, q, {1, over(q, 1)}, 0);
    CHECK(odd.value == 0);
    CHECK(odd.slope == doctest::Approx(4 * 0.15915494309189535 / std::sqrt(q + 1)));
    CHECK(odd.cross == 0);
  }
}
