// Expectations under a bivariate normal distribution by quadrature in long double. One variable is
// integrated out by hand, the other by Gauss and Legendre's rule on panels that shrink towards the
// kink at 0: as exact for inputs that are parallel to 1e-15 as for any others.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace quadrature {

using Real = long double;

inline Real density(Real x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
}
inline Real distribution(Real x) { return std::erfc(-x / std::sqrt(Real(2))) / 2; }

/// Three integrals over the same points.
struct Triple {
  Real value = 0, slope = 0, cross = 0;
  friend Triple operator+(const Triple& a, const Triple& b) {
    return {a.value + b.value, a.slope + b.slope, a.cross + b.cross};
  }
  friend Triple operator*(Real c, const Triple& a) {
    return {c * a.value, c * a.slope, c * a.cross};
  }
};

struct Rule {
  std::vector<Real> x, w;  // on [-1, 1]

  explicit Rule(int n) : x(n), w(n) {
    for (int i = 0; i < n; ++i) {
      Real z = std::cos(std::numbers::pi_v<Real> * (i + Real(0.75)) / (n + Real(0.5))), slope = 1;
      for (int newton = 0; newton < 50; ++newton) {
        Real p = 1, before = 0;
        for (int k = 1; k <= n; ++k) {
          const Real next = ((2 * k - 1) * z * p - (k - 1) * before) / k;
          before = p;
          p = next;
        }
        slope = n * (z * p - before) / (z * z - 1);
        const Real step = p / slope;
        z -= step;
        if (std::abs(step) < Real(1e-18)) break;
      }
      x[i] = z;
      w[i] = 2 / ((1 - z * z) * slope * slope);
    }
  }

  /// Of f with values in Real or Triple.
  template <class F>
  auto over(Real lo, Real hi, F f) const {
    decltype(f(lo)) sum{};
    for (std::size_t i = 0; i < x.size(); ++i)
      sum = sum + w[i] * f((lo + hi) / 2 + (hi - lo) / 2 * x[i]);
    return (hi - lo) / 2 * sum;
  }
};

/// E[f(g)], g standard normal, f smooth but near 0.
template <class F>
auto normal_mean(F f) {
  static const Rule rule(20);
  const auto weighted = [&](Real g) { return density(g) * f(g); };
  decltype(weighted(0)) sum{};
  Real last = 0;
  for (Real edge = 1e-18L; last < 12; edge = edge < 1 ? 2 * edge : edge + 1) {
    const Real end = std::min<Real>(edge, 12);
    sum = sum + rule.over(last, end, weighted) + rule.over(-end, -last, weighted);
    last = end;
  }
  return sum;
}

/// q1 q2 - k^2 with an error far below a rounding of q1 q2.
inline Real determinant(double q1, double q2, double k) {
  const double p = q1 * q2, s = k * k;
  return (Real(p) - Real(s)) + (Real(std::fma(q1, q2, -p)) - Real(std::fma(k, k, -s)));
}

/// h_t(u) = u Phi(u / t) of u ~ N(mean, variance), averaged: the value itself, and with h' and u h'
/// in the place of h.
struct Smooth {
  Real value, slope, product;

  Smooth(Real t, Real mean, Real variance) {
    const Real c = std::sqrt(variance + t * t);
    if (c == 0) {
      slope = mean > 0;
      value = product = mean > 0 ? mean : 0;
      return;
    }
    const Real z = mean / c, share = t * t / (c * c);
    value = mean * distribution(z) + variance / c * density(z);
    slope = distribution(z) + z * share * density(z);
    // u h' = h + u^2 phi(u / t) / t, and phi(u / t) times the density of u is normal again.
    product = value + density(z) / c * (mean * mean * share * share + variance * share);
  }
};

/// E[h_s h_t], E[h_s' h_t'], E[u h_s' u' h_t'] of variances q1 > 0 and q2 and covariance k.
struct Moments : Triple {
  Moments(double s, double t, double q1, double q2, double k) {
    const Real rest = std::max<Real>(0, determinant(q1, q2, k) / q1), root = std::sqrt(Real(q1));
    Triple::operator=(normal_mean([&](Real g) {
      const Real u = root * g;
      const Smooth a(s, u, 0), b(t, k / Real(q1) * u, rest);
      return Triple{a.value * b.value, a.slope * b.slope, a.product * b.product};
    }));
  }
};

/// E[f(u, u')] of a smooth f, in both variables.
template <class F>
auto plane_mean(double q1, double q2, double k, F f) {
  static const Rule rule(24);
  const Real first = std::sqrt(Real(q1)), tilt = k / first;
  const Real second = std::sqrt(std::max<Real>(0, determinant(q1, q2, k) / q1));
  const auto line = [&](auto g) {
    decltype(g(Real(0))) sum{};
    for (int panel = -10; panel < 10; ++panel) sum = sum + rule.over(panel, panel + 1, g);
    return sum;
  };
  return line([&](Real x) {
    return density(x) *
           line([&](Real y) { return density(y) * f(first * x, tilt * x + second * y); });
  });
}

/// Checks it, too.
inline bool near(double got, Real wanted, double tolerance) {
  CAPTURE(got);
  CAPTURE(static_cast<double>(wanted));
  const bool close = std::abs(got - wanted) <= tolerance;
  CHECK(close);
  return close;
}

}  // namespace quadrature
