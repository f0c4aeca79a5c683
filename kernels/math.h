// Elementary functions that loops over rows can use. On the CPU float32 exp, exp - 1, ln(1 + x),
// tanh and the tail of the normal distribution, and the float64 angle, are our own: without calls
// and without branches, so that the compiler runs them eight or sixteen at a time. The rest, and
// the GPU but where a function says so, use the standard library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "group.h"

namespace keel {

namespace detail {

/// a * b + c, fused where the processor does that in one instruction: nvcc sees to it by itself.
template <class T>
KEEL_HD KEEL_INLINE T quick_fma(T a, T b, T c) {
#if !defined(__CUDA_ARCH__) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// e^x = scale (1 + slope r), scale a power of two and r of |r| <= ln(2)/2.
struct VectorExp {
  float scale, slope, r;
};

/// Of x <= 88.8; scale is 0 below -87.7, and infinity above 88.3.
KEEL_HD KEEL_INLINE VectorExp vector_exp_parts(float x) {
  x = x < -88.0f ? -88.0f : x;           // k = -127, and so an exponent field of 0: the scale is 0
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = quick_fma(x, 1.44269504f, kRound), k = shifted - kRound;
  // ln 2 in two parts (Cody and Waite)
  const float r = quick_fma(k, 2.12194440e-4f, quick_fma(k, -0.693359375f, x));
  // Chebyshev interpolation of e^r on |r| <= ln(2)/2, degree 6: 4e-9 before rounding.
  float p = 0.00139411084f;
  p = quick_fma(p, r, 0.00837512640f);
  p = quick_fma(p, r, 0.0416663529f);
  p = quick_fma(p, r, 0.166664155f);
  p = quick_fma(p, r, 0.500000005f);
  p = quick_fma(p, r, 1.00000004f);
  // k by its bits in `shifted`: a conversion of a NaN to an integer is not defined.
  constexpr std::uint32_t kZero = std::bit_cast<std::uint32_t>(kRound) - 127;
  return {std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) - kZero) << 23), p, r};
}

/// e^x of x <= 88.8: within 2e-7 relative from -87.3 to 88.3, 0 below -87.7, infinity above 88.3 (a
/// factor 1.5 early), NaN for NaN.
KEEL_INLINE float vector_exp_below(float x) {
  const VectorExp e = vector_exp_parts(x);
  return quick_fma(e.slope, e.r, 1.0f) * e.scale;
}

/// e^x - 1 of x <= 0, within 2e-7 relative: scale - 1 is exact, and 0 where x is small.
KEEL_HD KEEL_INLINE float vector_exp_less_one(float x) {
  const VectorExp e = vector_exp_parts(x);
  return quick_fma(e.scale, e.slope * e.r, e.scale - 1.0f);
}

/// The same for every x.
KEEL_INLINE float vector_exp(float x) { return vector_exp_below(x > 88.8f ? 88.8f : x); }

/// ln(1 + x) within 2e-7 relative for 0 <= x <= 1: 2 artanh z, z = x / (2 + x) <= 1/3; artanh z is
/// z + z^3 P(z^2), P of degree 3 by Chebyshev interpolation, 2e-8 before rounding.
KEEL_HD KEEL_INLINE float vector_log_of_one_plus(float x) {
  const float z = x / (2.0f + x), square = z * z;
  float p = 0.1342574901f;
  p = quick_fma(p, square, 0.141183099f);
  p = quick_fma(p, square, 0.2000378032f);
  p = quick_fma(p, square, 0.3333332017f);
  return 2.0f * quick_fma(z * square, p, z);
}

/// tanh x within 3e-7 relative: x + x^3 P(x^2) on |x| < 0.55, P of degree 4 by Chebyshev
/// interpolation, 4e-9 before rounding; beyond, (1 - e) / (1 + e) with e = e^-2|x|.
KEEL_INLINE float vector_tanh(float x) {
  constexpr float kSmall = 0.55f;
  const float size = x < 0 ? -x : x, square = x * x;
  float p = -0.006610227849f;
  p = quick_fma(p, square, 0.02130938868f);
  p = quick_fma(p, square, -0.05390942883f);
  p = quick_fma(p, square, 0.1333311373f);
  p = quick_fma(p, square, -0.3333333201f);
  const float e = vector_exp_below(-2.0f * size), far = (1.0f - e) / (1.0f + e);
  return size < kSmall ? quick_fma(x * square, p, x) : x < 0 ? -far : far;
}

/// P(N(0, 1) > x) for x >= 0 within 4.5e-7 relative, if `exponential` is exp(-x^2/2): that times
/// t G(t), t = 1 / (1 + x/3.8), G of degree 8, fitted where exp(-x^2/2) is not 0: 1.3e-8 before
/// rounding, and more by other scales than 3.8 (docs/normal_tail.py).
KEEL_INLINE float vector_upper_tail(float x, float exponential) {
  const float t = 1.0f / quick_fma(0.2631579f, x, 1.0f);
  float g = 0.0310278032f;
  g = quick_fma(g, t, -0.1488520160f);
  g = quick_fma(g, t, 0.2327805553f);
  g = quick_fma(g, t, -0.1316676147f);
  g = quick_fma(g, t, 0.1480763417f);
  g = quick_fma(g, t, 0.0562284852f);
  g = quick_fma(g, t, 0.1029923677f);
  g = quick_fma(g, t, 0.1044014895f);
  g = quick_fma(g, t, 0.1050125816f);
  return exponential * t * g;
}

/// atan2(y, x) for y >= 0, within 5e-16: atan z on |z| <= tan(pi/8), where octants are turned to by
/// arctan t = pi/4 + arctan((t - 1) / (t + 1)).
KEEL_INLINE double vector_angle(double y, double x) {
  constexpr double kPi = 3.14159265358979323846, kTanPi8 = 0.41421356237309504880;
  const double across = x < 0 ? -x : x;
  const bool steep = y > across;
  const double small = steep ? across : y, large = steep ? y : across;
  const bool turned = small > kTanPi8 * large;
  const double bottom = turned ? small + large : large;
  const double z = (turned ? small - large : small) / (bottom > 0 ? bottom : 1.0);
  // Chebyshev interpolation of (arctan(z) / z - 1) / z^2 in z^2, degree 10: 5e-18 before rounding.
  const double u = z * z;
  double p = -0.019176887119047435;
  p = quick_fma(p, u, 0.039231658295575088);
  p = quick_fma(p, u, -0.050854497379398407);
  p = quick_fma(p, u, 0.058581489128021295);
  p = quick_fma(p, u, -0.066645114473819392);
  p = quick_fma(p, u, 0.076921831908260865);
  p = quick_fma(p, u, -0.090909045781239012);
  p = quick_fma(p, u, 0.11111111015256361);
  p = quick_fma(p, u, -0.14285714284666542);
  p = quick_fma(p, u, 0.19999999999995521);
  p = quick_fma(p, u, -0.33333333333333331);
  double angle = quick_fma(z * u, p, z);
  angle = turned ? kPi / 4 + angle : angle;
  angle = steep ? kPi / 2 - angle : angle;
  return x < 0 ? kPi - angle : angle;
}

}  // namespace detail

/// The angle of (x, y), y >= 0, from the positive x axis: atan2(y, x), from 0 to pi.
KEEL_HD KEEL_INLINE double upper_angle(double y, double x) {
#ifdef __CUDA_ARCH__
  return atan2(y, x);
#else
  return detail::vector_angle(y, x);
#endif
}

/// The largest power of two that is not above x > 0, if x is normal; infinity of infinity.
template <class T>
KEEL_HD T power_of_two_in(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(x) & kExponent));
}

/// e^x.
template <class T>
KEEL_HD KEEL_INLINE T exponential(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) return detail::vector_exp(x);
#endif
  return std::exp(x);
}

/// e^x - 1, x <= 0. In float32 our own on a GPU, too, where it has no branch either.
template <class T>
KEEL_HD KEEL_INLINE T exponential_less_one(T x) {
  if constexpr (sizeof(T) == 4) return detail::vector_exp_less_one(x);
  return std::expm1(x);
}

/// ln(1 + x), 0 <= x <= 1. In float32 our own on a GPU, too, for the same reason.
template <class T>
KEEL_HD KEEL_INLINE T log_of_one_plus(T x) {
  if constexpr (sizeof(T) == 4) return detail::vector_log_of_one_plus(x);
  return std::log1p(x);
}

/// The logistic function, 1 / (1 + e^-x).
template <class T>
KEEL_HD KEEL_INLINE T logistic(T x) {
  return T(1) / (T(1) + exponential(-x));
}

/// tanh x.
template <class T>
KEEL_HD KEEL_INLINE T hyperbolic_tangent(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) return detail::vector_tanh(x);
#endif
  return std::tanh(x);
}

/// The standard normal distribution at x >= 0: its density, and what lies above x, 1 - Phi(x),
/// which has its relative accuracy however far out.
template <class T>
struct NormalTail {
  T above, density;
};

template <class T>
KEEL_HD KEEL_INLINE NormalTail<T> normal_tail(T x) {
  constexpr T kInverseSqrt2Pi = T(0.39894228040143267794);
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) {
    const float e = detail::vector_exp_below(-0.5f * x * x);
    return {detail::vector_upper_tail(x, e), kInverseSqrt2Pi * e};
  }
#endif
  return {T(0.5) * std::erfc(x * T(0.70710678118654752440)),
          kInverseSqrt2Pi * exponential(T(-0.5) * x * x)};
}

}  // namespace keel
