// Expectations of activations under a bivariate normal distribution, in closed form: relu, gelu and
// silu are all u F(u), F a mixture of normal distribution functions, tanh is 2 F - 1, sigmoid F,
// and softplus the integral of F. Derivations: docs/kernels.md.
#pragma once

#include <cmath>

#include "math.h"

namespace keel {

/// F(u) = sum_t weight[t] Phi(u / scale[t]), by the squares of the scales.
struct Mixture {
  static constexpr int kMost = 8;
  int terms = 0;
  double weight[kMost]{};
  double scale2[kMost]{};
};

/// What phi(u) is: u F(u), 2 F(u) - 1, or the integral of F from -infinity to u.
enum class Form { product, distribution, integral };

inline constexpr Mixture kGeluMixture{1, {1}, {1}};

/// The logistic function is a scale mixture of normal ones (Andrews and Mallows 1974). This one of
/// eight terms errs by 2.2e-9 in it, 3.6e-8 in silu, 4.4e-8 in its derivative and 8.2e-9 in
/// softplus, at most and anywhere: docs/logistic_mixture.py.
inline constexpr Mixture kLogisticMixture = [] {
  constexpr double kScale[8] = {0.73241633016287311, 0.94381761940538145, 1.2036682022028016,
                                1.5367263832411999,  1.9679757466396857,  2.5232547830274767,
                                3.2372515223567544,  4.197936616352461};
  Mixture logistic{
      8,
      {0.0032462325698353503, 0.051516323748010774, 0.19507585691559146, 0.31557005814509065,
       0.27415177470261887, 0.13107786818899592, 0.027912348964907064, 0.0014495367649499658},
      {}};
  for (int t = 0; t < 8; ++t) logistic.scale2[t] = kScale[t] * kScale[t];
  return logistic;
}();

/// tanh(u) = 2 sigma(2 u) - 1. Errs by 4.3e-9, and by 5.3e-8 in its derivative.
inline constexpr Mixture kTanhMixture = [] {
  Mixture tanh = kLogisticMixture;
  for (double& square : tanh.scale2) square /= 4;
  return tanh;
}();

namespace detail {
inline constexpr double kOverTwoPi = 0.15915494309189533577;
inline constexpr double kOverRootTwoPi = 0.39894228040143267794;
}  // namespace detail

/// q1 q2 - k^2 >= 0 within two roundings of the exact value, however near q1 q2 and k^2 are
/// (Kahan).
KEEL_HD inline double determinant(double q1, double q2, double k) {
  const double square = k * k;
  const double lost = std::fma(k, k, -square);
  const double d = std::fma(q1, q2, -square) - lost;
  return d > 0 ? d : 0;
}

/// For (u, u') normal with mean 0, variances q1 and q2, and covariance k.
struct Moments {
  double value;  ///< E[phi(u) phi(u')]
  double slope;  ///< E[phi'(u) phi'(u')]
  double cross;  ///< E[u phi'(u) u' phi'(u')]
};

/// phi = relu, whose derivative at 0 is 0.
KEEL_HD KEEL_INLINE Moments relu_moments(double q1, double q2, double k) {
  const double w = std::sqrt(determinant(q1, q2, k));
  const double both_positive = upper_angle(w, -k) * detail::kOverTwoPi;
  const bool at_zero = (q1 == 0) | (q2 == 0);
  const double slope = at_zero ? 0 : both_positive;
  const double value = k * slope + w * detail::kOverTwoPi;
  return {value, slope, value};
}

/// Of phi(u) = u above 0 and leak u below, whose derivative at 0 is leak, from those of relu: it is
/// (1 - leak) relu(u) + leak u, E[relu(u) u'] = k / 2 and E[relu'(u)] = 1/2.
KEEL_HD KEEL_INLINE Moments leaky_moments(Moments relu, double leak, double q1, double q2,
                                          double k) {
  const double left = 1 - leak, square = left * left;
  const double above = (q1 == 0 ? 0 : 0.5) + (q2 == 0 ? 0 : 0.5);
  const double value = square * relu.value + leak * k;
  return {value, square * relu.slope + leak * (left * above + leak), value};
}

/// One term of a mixture at one input: s2 = scale^2, and over = 1 / (q + s2).
struct MixtureTerm {
  double s2, over;
};

/// E[phi_s(u) phi_t(u')] and so on of phi_s(u) = h_s(u) = u Phi(u / s), 2 Phi(u / s) - 1, or
/// E[relu(u + s e)], e normal, which is the integral of Phi(u / s); `cross` only where asked for,
/// else 0. One body: a GPU's compiler leaves a function that stands in more than a few places a
/// call, and what is in registers is spilled around it.
template <bool kCross>
KEEL_HD KEEL_INLINE Moments mixture_moments(Form form, double q1, MixtureTerm s, double q2,
                                            MixtureTerm t, double k) {
  // Sums of terms that are not negative: nothing cancels, near-parallel inputs included.
  const double n = determinant(q1, q2, k);
  const double d = n + (q1 * t.s2 + q2 * s.s2 + s.s2 * t.s2);
  const double w = std::sqrt(d), over_w = 1 / w;
  const bool odd = form == Form::distribution;
  const double y = s.s2 * over_w * (t.s2 * over_w);
  // The chance that both are positive; odd, a share of the circle, of the angle whose sine is
  // k / sqrt((q1 + s^2) (q2 + t^2)): a small one with all its digits.
  const double angle = upper_angle(odd ? (k < 0 ? -k : k) : w, odd ? w : -k) * detail::kOverTwoPi;
  Moments m;
  m.cross = 0;
  if (odd) {
    m.value = 4 * (k < 0 ? -angle : angle);
    m.slope = 4 * detail::kOverTwoPi * over_w;
    if constexpr (kCross) m.cross = m.slope * y * k;
    return m;
  }
  const double a = s.s2 * s.over, b = t.s2 * t.over;
  const double r = a + b;
  const double slope_w = k * over_w;
  const double product = k * angle + (n * over_w + k * slope_w * r) * detail::kOverTwoPi;
  if (form == Form::integral) {
    m.value = k * angle + w * detail::kOverTwoPi;
    m.slope = angle;
    if constexpr (kCross) m.cross = product;  // u phi_s' is h_s
    return m;
  }
  m.value = product;
  m.slope = angle + slope_w * (r + y) * detail::kOverTwoPi;
  if constexpr (kCross) {
    const double squares = a * a - a * b + b * b;
    const double first = r - a * a - a * b - b * b + y * y * (1 + 3 * slope_w * slope_w);
    m.cross = m.value + (w * first + squares * k * slope_w) * detail::kOverTwoPi;
  }
  return m;
}

/// E[phi_s(u)], u of variance q.
KEEL_HD inline double mixture_mean(Form form, double q, MixtureTerm s) {
  if (form == Form::distribution) return 0;
  const double over = form == Form::product ? q : q + s.s2;
  return over * std::sqrt(s.over) * detail::kOverRootTwoPi;
}

}  // namespace keel
