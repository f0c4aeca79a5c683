// Adam's arithmetic, of one parameter and of one step: for the kernels that update.
#pragma once

#include <cmath>
#include <limits>

#include "adam.h"
#include "group.h"

namespace keel {

/// base^n for a whole n > 0, by squaring: of pow's many more instructions, in the one GPU thread
/// that there is, each would wait for the last. Off by up to n roundings, of which 1 - base^n sees
/// few.
KEEL_HD inline double whole_power(double base, double n) {
  double result = 1;
  for (auto left = static_cast<int64_t>(n); left > 0; left /= 2, base *= base)
    if (left % 2 != 0) result *= base;
  return result;
}

/// Counts the step and computes its bias corrections, once and in double.
struct AdamClock {
  double lr = 0, beta1 = 0, beta2 = 0;
  double* step = nullptr;  // AdamState's

  AdamClock() = default;
  AdamClock(const AdamOptions& options, const AdamState& state)
      : lr(options.lr),
        beta1(options.beta1),
        beta2(options.beta2),
        step(state.step.data<double>()) {}

  KEEL_HD void tick() const {
    // Stored at the end: one power need not wait for the other's.
    const double n = step[0] + 1, rate = lr / (1 - whole_power(beta1, n));
    const double correction = 1 / std::sqrt(1 - whole_power(beta2, n));
    step[0] = n;
    step[1] = rate;
    step[2] = correction;
  }
};

/// A parameter p, its moments m and v, by its derivative: rate and correction are the clock's.
template <class T>
struct AdamRule {
  T beta1 = 0, beta2 = 0, one_minus_beta1 = 0, one_minus_beta2 = 0, eps = 0;

  AdamRule() = default;
  explicit AdamRule(const AdamOptions& options)
      : beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        one_minus_beta1(static_cast<T>(1 - options.beta1)),
        one_minus_beta2(static_cast<T>(1 - options.beta2)),
        eps(static_cast<T>(options.eps)) {}

  KEEL_HD void update(T derivative, T rate, T correction, T& p, T& m, T& v) const {
    // The moment of a parameter that no longer gets a derivative decays into denormals, on which a
    // CPU takes a hundred times as long; below the smallest normal number it is 0.
    constexpr T kSmallest = std::numeric_limits<T>::min();
    const T moment = beta1 * m + one_minus_beta1 * derivative;
    m = moment < kSmallest && moment > -kSmallest ? T(0) : moment;
    v = beta2 * v + one_minus_beta2 * derivative * derivative;
    p -= rate * m / (std::sqrt(v) * correction + eps);
  }
};

}  // namespace keel
