// Elementary functions that loops over rows can use. On the CPU float32 has its own: without calls
// and without branches, so that the compiler runs them eight or sixteen at a time. float64 and the
// GPU use the standard library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "group.h"

namespace keel {

namespace detail {

/// e^x within 3e-7 relative; 0 below -87.3, infinity above 88.3 (a factor 1.5 early), NaN for NaN.
inline float vector_exp(float x) {
  x = x < -88.8f ? -88.8f : x;
  x = x > 88.8f ? 88.8f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float k = (x * 1.44269504f + kRound) - kRound;
  const float r =
      (x - k * 0.693359375f) + k * 2.12194440e-4f;  // ln 2 in two parts (Cody and Waite)
  // Chebyshev interpolation of e^r on |r| <= ln(2)/2, degree 6: 4e-9 before rounding.
  float p = 0.00139411084f;
  p = p * r + 0.00837512640f;
  p = p * r + 0.0416663529f;
  p = p * r + 0.166664155f;
  p = p * r + 0.500000005f;
  p = p * r + 1.00000004f;
  p = p * r + 1.0f;
  const float bounded = k < -127.0f ? -127.0f : k;  // exponent field 0: the result is 0
  return p * std::bit_cast<float>((static_cast<std::int32_t>(bounded) + 127) << 23);
}

/// P(N(0, 1) > x) for x >= 0 within 2e-7 x^2 relative: exp(-x^2/2) t G(t), t = 1 / (1 + x/4),
/// G of degree 9 by Chebyshev interpolation of the scaled complementary error function, 9e-8.
inline float vector_upper_tail(float x) {
  const float t = 1.0f / (1.0f + 0.25f * x);
  float g = 0.020814888403f;
  g = g * t - 0.0853892299368f;
  g = g * t + 0.103798857523f;
  g = g * t - 0.0397468633678f;
  g = g * t + 0.0682739957334f;
  g = g * t + 0.0574462582406f;
  g = g * t + 0.0818896317661f;
  g = g * t + 0.0934395147095f;
  g = g * t + 0.0997373967683f;
  g = g * t + 0.0997355610364f;
  return vector_exp(-0.5f * x * x) * t * g;
}

}  // namespace detail

/// e^x.
template <class T>
KEEL_HD T exponential(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) return detail::vector_exp(x);
#endif
  return std::exp(x);
}

/// Phi(x), the standard normal distribution function, accurate in both tails.
template <class T>
KEEL_HD T normal_cdf(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) {
    const float tail = detail::vector_upper_tail(x < 0 ? -x : x);
    return x < 0 ? tail : 1.0f - tail;
  }
#endif
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));
}

}  // namespace keel
