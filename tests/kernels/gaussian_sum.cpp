// Moments of elu, selu and gelu's form by tanh from their sums of Gaussians, against their own by
// quadrature in long double; and what ntk/diagonal_cell.cpp takes for granted of the sums.
#include "../../kernels/gaussian_sum.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "../../kernels/elu.h"
#include "quadrature.h"

using namespace keel;
using quadrature::near;
using quadrature::Real;
using quadrature::Triple;

namespace {

struct Case {
  double q1, q2, rho;
  double size() const { return std::sqrt(q1 * q2); }
  double sizes() const { return std::sqrt(q1) + std::sqrt(q2); }
  double k() const { return rho * size(); }
};

constexpr Case kCases[] = {{1, 1, 0.5},        {0.01, 9, -0.8},   {30, 12, 0.99},
                           {1e-12, 4, 0.7},    {4, 4, 1 - 1e-12}, {1e-20, 1e-20, 0.3},
                           {100, 1e-6, -0.99}, {3e-9, 2e-9, -1},  {1e6, 1e8, 0.9999999},
                           {0.5, 0.25, 1e-9}};

struct Elu {
  Real alpha, scale;

  Triple at(Real u) const {
    const Real slope = scale * (u > 0 ? 1 : alpha * std::exp(u));
    return {scale * (u > 0 ? u : alpha * std::expm1(u)), slope, u * slope};
  }

  /// E of the same, of u ~ N(mean, variance): by hand, for what is smooth beside the other kink.
  Triple averaged(Real mean, Real variance) const {
    if (variance == 0) return at(mean);
    const Real s = std::sqrt(variance), z = mean / s, beyond = z + s;
    const Real above = quadrature::distribution(z), here = quadrature::density(z);
    // E[exp(u); u < 0] = exp(mean + variance / 2) Phi(-beyond), by Mills' ratio where that is small
    Real fraction = 0;
    for (int n = 80; n > 0; --n) fraction = n / (beyond + fraction);
    const Real powers = beyond > 10
                            ? here / (beyond + fraction)
                            : std::exp(mean + variance / 2) * quadrature::distribution(-beyond);
    const Real line = mean * above + s * here;
    return {scale * (line + alpha * (powers - (1 - above))), scale * (above + alpha * powers),
            scale * (line + alpha * ((mean + variance) * powers - s * here))};
  }

  Triple moments(const Case& c) const {
    const Real q = c.q1, root = std::sqrt(q);
    const Real rest = std::max<Real>(0, quadrature::determinant(c.q1, c.q2, c.k()) / q);
    return quadrature::normal_mean([&](Real g) {
      const Triple a = at(root * g), b = averaged(c.k() / q * root * g, rest);
      return Triple{a.value * b.value, a.slope * b.slope, a.cross * b.cross};
    });
  }
};

Triple gelu_by_tanh(Real u) {
  const Real a = 2 * std::sqrt(2 / std::numbers::pi_v<Real>), b = 0.044715L;
  const Real sigma = 1 / (1 + std::exp(-a * (u + b * u * u * u)));
  const Real slope = sigma + u * sigma * (1 - sigma) * a * (1 + 3 * b * u * u);
  return {u * sigma, slope, u * slope};
}

/// The sum on the side of `sign`, and of its derivative.
struct Side {
  double value = 0, derivative = 0, slope = 0;
};

Side side_of(const GaussianSum& f, double x, int sign) {
  Side s;
  for (int t = 0; t < f.terms; ++t) {
    const GaussianSum::Term& of = f.term[t];
    const double bell = std::exp(-0.5 * of.p * x * x);
    const double w = of.even.w + sign * of.odd.w, v = of.even.v + sign * of.odd.v;
    s.value += bell * (w + v * x);
    s.derivative += bell * (v - of.p * x * (w + v * x));
    s.slope += bell * (of.slope_even.w + sign * of.slope_odd.w +
                       (of.slope_even.v + sign * of.slope_odd.v) * x);
  }
  return s;
}

}  // namespace

TEST_CASE("elu, selu: a sum of Gaussians within its stated errors") {
  for (double alpha : {1.0, 0.0, 0.5, 20.0})
    for (double x = 0; x < 40; x += 0.01) {
      CAPTURE(alpha);
      CAPTURE(x);
      const GaussianSum f = elu_sum(alpha);
      const Side below = side_of(f, x, -1), above = side_of(f, x, 1);
      near(above.value, x, 1e-14 * (1 + x) * (1 + alpha));
      near(above.slope, 1, 1e-14 * (1 + alpha));
      near(below.value, alpha * std::expm1(-x), 2.3e-8 * alpha + 1e-14);
      near(below.slope, alpha * std::exp(-x), 2.3e-8 * alpha + 1e-14);
      near(x * below.slope, alpha * x * std::exp(-x), 3.5e-7 * alpha + 1e-14);
    }
  const GaussianSum selu = elu_sum(kSeluAlpha, kSeluScale);
  CHECK(side_of(selu, 2, 1).value == doctest::Approx(2 * kSeluScale).epsilon(1e-13));
  CHECK(side_of(selu, 2, -1).value ==
        doctest::Approx(kSeluScale * kSeluAlpha * std::expm1(-2.0)).epsilon(1e-7));
}

TEST_CASE("gelu's form by tanh: a sum of Gaussians within its stated errors") {
  for (double x = 0; x < 40; x += 0.01)
    for (int sign : {-1, 1}) {
      CAPTURE(x);
      CAPTURE(sign);
      const Side s = side_of(kGeluByTanhSum, x, sign);
      const Triple exact = gelu_by_tanh(sign * static_cast<Real>(x));
      near(s.value, exact.value, 2.4e-8);
      near(s.slope, exact.slope, 2.5e-8);
      near(x * s.slope, x * exact.slope, 1.5e-7);
    }
}

TEST_CASE("elu, selu: moments are their own, of small variances relatively, too") {
  for (const Elu& elu : {Elu{1, 1}, Elu{0, 1}, Elu{0.5L, 1}, Elu{20, 1},
                         Elu{static_cast<Real>(kSeluAlpha), static_cast<Real>(kSeluScale)}})
    for (const Case& c : kCases) {
      const double alpha = static_cast<double>(elu.alpha), scale = static_cast<double>(elu.scale);
      CAPTURE(alpha);
      CAPTURE(c.q1);
      CAPTURE(c.q2);
      CAPTURE(c.rho);
      const GaussianSum f = elu_sum(alpha, scale);
      const Moments m = gaussian_moments<true>(f, c.q1, c.q2, c.k());
      const Triple exact = elu.moments(c);
      // By Cauchy and Schwarz, from the errors of phi, half of the time, and of phi / u and phi'.
      const double steepest = std::max(1.0, alpha), most = scale * scale * steepest;
      near(m.value, exact.value,
           most * (1e-13 * c.size() + alpha * std::min(1.6e-8 * c.sizes(), 7e-7 * c.size())));
      near(m.slope, exact.slope, most * (3.2e-8 * alpha + 1e-13));
      near(m.cross, exact.cross, most * (3.2e-8 * alpha + 1e-13) * c.size());
      // u and u' change places without changing a bit.
      const Moments other = gaussian_moments<true>(f, c.q2, c.q1, c.k());
      CHECK(m.value == other.value);
      CHECK(m.slope == other.slope);
      CHECK(m.cross == other.cross);
      const Triple mean = elu.averaged(0, c.q1);
      near(gaussian_mean(f, c.q1), mean.value, scale * (2e-13 + 3.5e-7 * alpha) * std::sqrt(c.q1));
    }
}

TEST_CASE("gelu's form by tanh: moments are its own") {
  for (const Case& c : kCases) {
    if (c.q2 > 100) continue;  // beyond what plane_mean's panels resolve
    CAPTURE(c.q1);
    CAPTURE(c.q2);
    CAPTURE(c.rho);
    const Moments m = gaussian_moments<true>(kGeluByTanhSum, c.q1, c.q2, c.k());
    const Triple exact = quadrature::plane_mean(c.q1, c.q2, c.k(), [](Real u, Real v) {
      const Triple a = gelu_by_tanh(u), b = gelu_by_tanh(v);
      return Triple{a.value * b.value, a.slope * b.slope, a.cross * b.cross};
    });
    near(m.value, exact.value, std::min(2.4e-8 * c.sizes(), 7e-7 * c.size()));
    near(m.slope, exact.slope, 5.7e-8);
    near(m.cross, exact.cross, 5.7e-8 * c.size());
    near(gaussian_mean(kGeluByTanhSum, c.q1), quadrature::normal_mean([&](Real g) {
           return gelu_by_tanh(std::sqrt(static_cast<Real>(c.q1)) * g).value;
         }),
         3.5e-7 * std::sqrt(c.q1));
  }
}

TEST_CASE("sums of Gaussians: no variance, and far more than any input has") {
  for (const GaussianSum& f : {elu_sum(1), elu_sum(0), elu_sum(0.5), elu_sum(7), kGeluByTanhSum}) {
    // relu's derivative at 0 is 0, elu's alpha
    const double at_0 = side_of(f, 0, -1).slope;
    const Moments none = gaussian_moments<true>(f, 0, 0, 0);
    CHECK(none.value == 0);
    CHECK(none.cross == 0);
    CHECK(none.slope == doctest::Approx(at_0 * at_0).epsilon(1e-12));
    CHECK(gaussian_mean(f, 0) == 0);
    const Moments one = gaussian_moments<true>(f, 3, 0, 0);
    CHECK(one.value == 0);
    CHECK(one.cross == 0);
    for (double q : {1e-100, 1e50, 1e100})
      for (double rho : {-1.0, -0.3, 0.0, 0.6, 1.0}) {
        CAPTURE(q);
        CAPTURE(rho);
        // two lines: of slopes to either side of 0, or far out
        const double below = q < 1 ? side_of(f, 0, -1).slope : 0;
        const double above = q < 1 ? side_of(f, 0, 1).slope : 1;
        const Moments relu = relu_moments(1, 1, rho);
        const double left = above - below;
        const double value = left * left * relu.value + left * below * rho + below * below * rho;
        const double slope = left * left * relu.slope + left * below + below * below;
        const Moments m = gaussian_moments<true>(f, q, q, rho * q);
        CHECK(std::abs(m.value / q - value) < 1e-11 * (1 + below * below));
        CHECK(std::abs(m.slope - slope) < 1e-11 * (1 + below * below));
        CHECK(std::abs(m.cross / q - value) < 1e-11 * (1 + below * below));
      }
  }
}

// phi^2, phi'^2 and so on fall or rise as it is said of phi itself, wherever that is more than the
// sum's error; a mean over u then does.
TEST_CASE("sums of Gaussians: what rises and falls of them") {
  const GaussianSum elu = elu_sum(1);
  for (double x = 1e-3; x < 16; x += 1e-3) {
    CAPTURE(x);
    const Side at = side_of(elu, x, -1);
    CHECK(at.derivative < 2e-7);                                // E[phi^2] rises
    CHECK(x * at.derivative >= at.value);                       // |phi| / |u| falls
    CHECK(side_of(elu, x + 1e-3, -1).slope < at.slope + 1e-9);  // and so does phi'
    CHECK(std::abs(x * at.slope) < 0.368);
  }
  for (double x = 1e-3; x < 4; x += 1e-3) {
    CAPTURE(x);
    const auto psi = [](double at) { return side_of(kGeluByTanhSum, at, -1).value / at; };
    CHECK(psi(x) < psi(x + 1e-3) + 1e-9);
    CHECK(psi(x) > -0.5);
  }
  // E[phi'^2] between any two variances by no more than is known of it.
  const GaussianSum& f = kGeluByTanhSum;
  double before = gaussian_moments<false>(f, 1e-6, 1e-6, 1e-6).slope, q = 1e-6;
  for (; q < 1e8; q *= 1.1) {
    CAPTURE(q);
    const double next = 1.1 * q, slope = gaussian_moments<false>(f, next, next, next).slope;
    CHECK(std::abs(slope - before) <= 1e-12 + f.known.near * (std::sqrt(next) - std::sqrt(q)));
    CHECK(std::abs(slope - before) <=
          1e-12 + f.known.far * (1 / std::sqrt(q) - 1 / std::sqrt(next)));
    before = slope;
  }
  // And how far E[phi^2], relatively, is from a multiple of q.
  for (double alpha : {0.0, 0.5, 1.0, 1.7, 10.0, 100.0})
    for (q = 1e-6; q < 1e8; q *= 1.3) {
      CAPTURE(alpha);
      CAPTURE(q);
      const GaussianSum g = elu_sum(alpha);
      const Moments m = gaussian_moments<false>(g, q, q, q);
      CHECK(q * m.slope <= (1 + std::min(std::sqrt(q), g.known.stretch) + 1e-9) * m.value);
      const double mean = gaussian_mean(g, q);
      CHECK(mean * mean <= (0.5 + 1e-9) * m.value);
    }
  for (q = 1e-6; q < 1e8; q *= 1.3) {
    const Moments m = gaussian_moments<false>(f, q, q, q);
    CHECK(q * m.slope <= (1 + std::min(std::sqrt(q), f.known.stretch) + 1e-9) * m.value);
  }
}
