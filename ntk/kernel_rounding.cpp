#include "kernel_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace keel {
namespace {

// The square of the smallest scale.
double smallest_scale2(const Mixture& mixture) {
  double smallest = std::numeric_limits<double>::infinity();
  for (int t = 0; t < mixture.terms; ++t) smallest = std::min(smallest, mixture.scale2[t]);
  return smallest;
}

}  // namespace

// A cosine off by c near 1 is an angle off by sqrt(2 c) near 0, and each relu's slope goes down by
// an angle's share of pi. That of h_s (docs/kernels.md) moves by at most E[h_s'' h_s''] q c, where
// int h_s''^2 = 0.78 / s and a density is at most 1 / sqrt(2 pi q), over its value at (x, x), 1/4
// at least; and far out, where it is relu, by twice relu's. A Layer Norm that takes a mean away
// leaves 1 - 1/pi of relu's square at least: the cosine's error is of that.
// Of 2 Phi(u / s) - 1, whose slope is (2/pi) / sqrt(D), a slope moves by q c / D of itself, D at
// least 2 q s^2 where inputs are parallel, a gain's share by three times that; and its K, no longer
// a multiple of the one before, by E[phi'^2] q c, which is at most 2 (1 + sqrt(q) / s) c of
// E[phi^2]. Where two kernels add up, what each is off by, relatively, the sum is at most.
double kernel_rounding(const std::vector<KernelMap>& maps, const Tensor& table, double cosine) {
  constexpr double kOfMean = std::numbers::pi / (std::numbers::pi - 1);
  constexpr double kRounded = 8 * std::numeric_limits<double>::epsilon();
  double sum = 0;
  std::int64_t row = 1;
  bool has_mean = false, kept_mean = false;
  double kept_sum = 0, kept_cosine = 0;
  const auto largest_q = [&] {
    double largest = 0;
    for (double q : table[row].to_vector<double>()) largest = std::max(largest, q);
    return largest;
  };
  for (const KernelMap& map : maps) {
    switch (map.kind) {
      case KernelMap::Kind::dense:
        has_mean = false;
        break;
      case KernelMap::Kind::relu:
      case KernelMap::Kind::mixture: {
        cosine += kRounded;
        const double angle = std::sqrt(2 * cosine) / std::numbers::pi;
        if (map.kind == KernelMap::Kind::relu)
          sum += angle;
        else
          sum += std::min(2 * angle,
                          1.5 * std::sqrt(largest_q() / smallest_scale2(map.mixture)) * cosine);
        has_mean = true;
        break;
      }
      case KernelMap::Kind::distribution: {
        const double q = largest_q(), scale2 = smallest_scale2(map.mixture);
        sum += std::min(1.0, (map.gain > 0 ? 3 : 1) * q / (2 * scale2) * cosine);
        cosine = std::min(2.0, 2 * (1 + std::sqrt(q / scale2)) * cosine + kRounded);
        sum += cosine;
        has_mean = false;
        break;
      }
      case KernelMap::Kind::layer_norm:
        if (map.centred == 0) break;  // the mean stays
        if (has_mean) cosine *= kOfMean;
        has_mean = false;
        break;
      case KernelMap::Kind::keep:
        kept_sum = sum;
        kept_cosine = cosine;
        kept_mean = has_mean;
        break;
      case KernelMap::Kind::add:
        sum = std::max(sum, kept_sum);
        cosine = std::max(cosine, kept_cosine) + kRounded;
        has_mean = has_mean || kept_mean;
        break;
    }
    row += map.rows();
  }
  return sum;
}

}  // namespace keel
