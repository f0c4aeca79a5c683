// Activations and their derivatives in double, by the library's own functions: what rows are held
// to before they are timed.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace keel::bench {

inline double normal_distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

inline double normal_density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// A function and its derivative.
struct ExactActivation {
  double (*value)(double);
  double (*derivative)(double);
};

inline constexpr ExactActivation kExactGelu = {
    [](double x) { return x * normal_distribution(x); },
    [](double x) { return normal_distribution(x) + x * normal_density(x); }};

inline constexpr ExactActivation kExactSilu = {
    [](double x) { return x * logistic(x); },
    [](double x) { return logistic(x) * (1 + x * logistic(-x)); }};

inline constexpr ExactActivation kExactElu = {[](double x) { return x > 0 ? x : std::expm1(x); },
                                              [](double x) { return std::exp(std::min(x, 0.0)); }};

}  // namespace keel::bench
