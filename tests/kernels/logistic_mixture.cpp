// What silu, tanh, sigmoid and softplus are made of: moments and means of the logistic function's
// mixture, within the stated errors of their own, by quadrature in long double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../../kernels/gaussian_moments.h"
#include "quadrature.h"

using namespace keel;
using quadrature::near;

namespace {

struct Case {
  double q1, q2, rho;
  double k() const { return rho * std::sqrt(q1 * q2); }
  double size() const { return std::sqrt(q1) + std::sqrt(q2); }
};

MixtureTerm term(const Mixture& mixture, int t, double q) {
  return {mixture.scale2[t], 1 / (q + mixture.scale2[t])};
}

Moments moments_of(const Mixture& mixture, Form form, double q1, double q2, double k) {
  Moments sum{0, 0, 0};
  for (int t = 0; t < mixture.terms; ++t)
    for (int u = 0; u < mixture.terms; ++u) {
      const Moments part =
          mixture_moments<true>(form, q1, term(mixture, t, q1), q2, term(mixture, u, q2), k);
      const double weight = mixture.weight[t] * mixture.weight[u];
      sum.value += weight * part.value;
      sum.slope += weight * part.slope;
      sum.cross += weight * part.cross;
    }
  return sum;
}

double mean_of(const Mixture& mixture, Form form, double q) {
  double mean = 0;
  for (int t = 0; t < mixture.terms; ++t)
    mean += mixture.weight[t] * mixture_mean(form, q, term(mixture, t, q));
  return mean;
}

// Of a function that gives phi, phi' and u phi' at u.
template <class F>
quadrature::Triple exact_moments(F phi, const Case& c) {
  return quadrature::plane_mean(c.q1, c.q2, c.k(), [&](long double u, long double v) {
    const quadrature::Triple a = phi(u), b = phi(v);
    return quadrature::Triple{a.value * b.value, a.slope * b.slope, a.cross * b.cross};
  });
}

template <class F>
long double exact_mean(F phi, double q) {
  return quadrature::normal_mean(
      [&](long double g) { return phi(std::sqrt(static_cast<long double>(q)) * g).value; });
}

quadrature::Triple silu(long double u) {
  const long double s = 1 / (1 + std::exp(-u)), slope = s + u * s * (1 - s);
  return {u * s, slope, u * slope};
}

quadrature::Triple tanh_of(long double u) {
  const long double value = std::tanh(u), slope = 1 - value * value;
  return {value, slope, u * slope};
}

quadrature::Triple sigmoid_of(long double u) {
  const long double s = 1 / (1 + std::exp(-u)), slope = s * (1 - s);
  return {s, slope, u * slope};
}

quadrature::Triple softplus_of(long double u) {
  const long double s = 1 / (1 + std::exp(-u));
  return {std::max(u, 0.0L) + std::log1p(std::exp(-std::abs(u))), s, u * s};
}

void near_all(const Moments& m, const quadrature::Triple& exact, double value, double slope,
              double cross) {
  near(m.value, exact.value, value);
  near(m.slope, exact.slope, slope);
  near(m.cross, exact.cross, cross);
}

constexpr Case kCases[] = {{1, 1, 0.5}, {0.01, 9, -0.8}, {30, 12, 0.99}, {1e-12, 4, 0.7}};

}  // namespace

TEST_CASE("silu: the mixture's moments are within the stated error of silu's own") {
  double weights = 0;
  for (double w : kLogisticMixture.weight) weights += w;
  CHECK(weights == doctest::Approx(1).epsilon(1e-15));
  for (const Case& c : {Case{1, 1, 0.5}, {0.01, 9, -0.8}, {30, 12, 0.99}, {4, 4, 1 - 1e-12}}) {
    CAPTURE(c.q1);
    CAPTURE(c.rho);
    const Moments m = moments_of(kLogisticMixture, Form::product, c.q1, c.q2, c.k());
    near_all(m, exact_moments(silu, c), 3.6e-8 * c.size(), 1e-7, 6e-7 * c.size());
  }
  for (double q : {1e-9, 0.4, 1.0, 77.0, 1e10}) {
    CAPTURE(q);
    near(mean_of(kLogisticMixture, Form::product, q), exact_mean(silu, q), 3.6e-8);
  }
}

TEST_CASE("tanh: the mixture's moments are within the stated error of tanh's own") {
  for (double rho : {-0.8, 0.5, 0.99})
    for (const Case& c : {Case{1, 1, rho}, {0.01, 4, rho}, {3, 2, rho}}) {
      CAPTURE(c.q1);
      CAPTURE(rho);
      const Moments m = moments_of(kTanhMixture, Form::distribution, c.q1, c.q2, c.k());
      near_all(m, exact_moments(tanh_of, c), 8.6e-9, 1.06e-7, 1.8e-7);
    }
}

TEST_CASE("sigmoid: half of the mixture's, and a half") {
  for (const Case& c : kCases) {
    CAPTURE(c.q1);
    CAPTURE(c.rho);
    const Moments m = moments_of(kLogisticMixture, Form::distribution, c.q1, c.q2, c.k());
    near_all({0.25 * m.value + 0.25, 0.25 * m.slope, 0.25 * m.cross}, exact_moments(sigmoid_of, c),
             5e-9, 3e-8, 5e-8);
    CHECK(mean_of(kLogisticMixture, Form::distribution, c.q1) == 0);
    near(0.5, exact_mean(sigmoid_of, c.q1), 1e-15);
  }
}

TEST_CASE("softplus: the mixture's integral, whose moments are relu's of more variance") {
  for (const Case& c : kCases) {
    CAPTURE(c.q1);
    CAPTURE(c.rho);
    const Moments m = moments_of(kLogisticMixture, Form::integral, c.q1, c.q2, c.k());
    near_all(m, exact_moments(softplus_of, c), 8.2e-9 * (2 + c.size()), 5e-9,
             3.6e-8 * (2 + c.size()));
    near(mean_of(kLogisticMixture, Form::integral, c.q1), exact_mean(softplus_of, c.q1), 8.2e-9);
  }
  // Of no variance: ln(2)^2, a slope of 1/4, and nothing that varies.
  const Moments none = moments_of(kLogisticMixture, Form::integral, 0, 0, 0);
  near(none.value, 0.48045301391820142467L, 1.2e-8);
  near(none.slope, 0.25L, 1e-15);
  CHECK(none.cross == 0);
}
