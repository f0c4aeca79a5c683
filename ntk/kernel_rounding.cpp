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
// leaves 1 - 1/pi of relu's square at least: the cosine's error is of that. What slopes of a prelu
// add to Theta moves as relu's K does, by less than its slope. Of 2 Phi(u / s) - 1, whose slope is
// (2/pi) / sqrt(D), a slope moves by q c / D of itself, D at least 2 q s^2 where inputs are
// parallel, a gain's share by three times that; and its K, no longer a multiple of the one before,
// by E[phi'^2] q c, which is at most 2 (1 + sqrt(q) / s) c of E[phi^2]. softplus has slopes that
// move by E[phi'' phi''] q c, less than what h_s's do, and a K that moves by less than c of itself;
// a gain's share moves by E[h_s' h_s'] q c, of q/4. sigmoid and softplus have variances of q
// E[phi']^2 at least, so that without their means the first is off by what a tanh is and softplus
// by 2 c; but what K was rounded by is of the mean's square, too. A sum of Gaussians is off by what
// its jump at 0 makes, as relu's, and what bends beside it, the roots of both added up; and its
// coefficients round by more. Without its mean, whose square is half of K at most, it is off by 2
// c; a gain's share moves by (sup|phi'| + sup|u phi''|)^2 q c, of q/4 at least. Where two kernels
// add up, what each is off by, relatively, the sum is at most.
double kernel_rounding(const std::vector<KernelMap>& maps, const Tensor& table, double cosine) {
  constexpr double kOfMean = std::numbers::pi / (std::numbers::pi - 1);
  constexpr double kRounded = 8 * std::numeric_limits<double>::epsilon();
  constexpr double kMostLost = 0.1;  // of a variance: beyond, nothing is known of what is left
  constexpr double kSumRounded = 5000 * std::numeric_limits<double>::epsilon();
  double sum = 0;
  std::int64_t row = 1;
  // What a mean that is taken away multiplies: `of_mean` the cosine's error; and whether a rounding
  // of K is to be taken of what is left.
  double of_mean = 1, kept_of_mean = 1;
  bool offset = false, kept_offset = false;
  double kept_sum = 0, kept_cosine = 0;
  const auto slope_of_relu = [&] { return std::sqrt(2 * cosine) / std::numbers::pi; };
  const auto largest_q = [&] {
    double largest = 0;
    for (double q : table[row].to_vector<double>()) largest = std::max(largest, q);
    return largest;
  };
  // Of a norm's rows: a mean's square over the variance, without the norm's eps, as what the
  // variance is off by is a share of it.
  const auto largest_mean = [&](double eps) {
    const std::vector<double> mean = table[row].to_vector<double>(),
                              scale = table[row + 1].to_vector<double>();
    double largest = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double square = mean[i] * mean[i];
      const double with_eps = scale[i] > 0 ? 1 / (scale[i] * scale[i]) : 0;
      // No more is left of a variance beside eps than its own rounding.
      const double variance = std::max(with_eps - eps, kRounded * (square + eps));
      if (square > 0) largest = std::max(largest, square / variance);
    }
    return largest;
  };
  for (const KernelMap& map : maps) {
    switch (map.kind) {
      case KernelMap::Kind::dense:
        of_mean = 1;
        offset = false;
        break;
      case KernelMap::Kind::relu:
        cosine += kRounded;
        sum += slope_of_relu();
        of_mean = kOfMean;
        offset = false;
        break;
      case KernelMap::Kind::mixture: {
        const double q = largest_q(), scale2 = smallest_scale2(map.mixture);
        if (map.form == Form::distribution) {
          sum += std::min(1.0, (map.gain > 0 ? 3 : 1) * q / (2 * scale2) * cosine);
          cosine = std::min(2.0, 2 * (1 + std::sqrt(q / scale2)) * cosine + kRounded);
          sum += cosine;
          of_mean = 1;
        } else {
          cosine += kRounded;
          sum += std::min(2 * slope_of_relu(), 1.5 * std::sqrt(q / scale2) * cosine);
          of_mean = kOfMean;
        }
        if (map.form == Form::integral) {
          if (map.gain > 0) sum += 6 * cosine;
          of_mean = 2;
        }
        offset = map.offset();
        break;
      }
      case KernelMap::Kind::gaussians: {
        const GaussianSum::Known& known = map.gaussians.known;
        const double q = largest_q();
        cosine += kSumRounded;
        const double bent = std::min(known.bend * q * cosine, known.turn * slope_of_relu());
        sum += std::pow(known.jump * std::sqrt(slope_of_relu()) + std::sqrt(bent), 2);
        if (map.gain > 0) sum += 8 * known.cross_slope * cosine;
        cosine = std::min(2.0, (1 + std::min(std::sqrt(q), known.stretch)) * cosine);
        sum += cosine;
        of_mean = 2;
        offset = false;
        break;
      }
      case KernelMap::Kind::layer_norm:
        if (map.centred == 0) break;  // the mean stays
        cosine *= of_mean;
        if (offset) {
          const double lost = kRounded * (1 + largest_mean(map.eps));
          if (lost > kMostLost) return std::numeric_limits<double>::infinity();
          cosine = std::min(2.0, cosine + lost);
        }
        of_mean = 1;
        offset = false;
        break;
      case KernelMap::Kind::keep:
        kept_sum = sum;
        kept_cosine = cosine;
        kept_of_mean = of_mean;
        kept_offset = offset;
        break;
      case KernelMap::Kind::add:
        sum = std::max(sum, kept_sum);
        cosine = std::max(cosine, kept_cosine) + kRounded;
        of_mean = std::max(of_mean, kept_of_mean);
        offset = offset || kept_offset;
        break;
    }
    row += map.rows();
  }
  return sum;
}

}  // namespace keel
