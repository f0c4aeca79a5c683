#include "diagonal_cell.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "interval.h"

namespace keel {
namespace {

void through_dense(const KernelMap& map, const DiagonalCell& kept, DiagonalCell& c) {
  // (weight ratio + from_k + constant / k) / (weight + bias / k), which is monotone in 1 / k.
  const auto ratio_at = [&](double ratio, double k) {
    if (std::isinf(k)) return (map.weight * ratio + map.from_k) / map.weight;
    return (k * (map.weight * ratio + map.from_k) + map.constant) / (k * map.weight + map.bias);
  };
  Enclosure ratio{0, kInfinity};
  if (c.k.lo > 0 && c.ratio.hi < kInfinity)
    ratio = {std::min(ratio_at(c.ratio.lo, c.k.lo), ratio_at(c.ratio.lo, c.k.hi)),
             std::max(ratio_at(c.ratio.hi, c.k.lo), ratio_at(c.ratio.hi, c.k.hi))};
  c.theta = map.weight * c.theta + map.from_k * c.k + Enclosure{map.constant, map.constant};
  c.k = map.weight * c.k + Enclosure{map.bias, map.bias};
  c.over = map.weight * c.over + Enclosure{map.bias, map.bias} / kept.k;
  c.ratio = both(ratio, c.theta / c.k);
  c.mean = {0, 0};
}

void through_relu(const KernelMap& map, DiagonalCell& c) {
  const double square = 0.5 * (1 + map.leak * map.leak), left = 1 - map.leak;
  const double mean = detail::kOverTwoPi * left * left / square;
  const double gain = map.gain + 0.5 * map.own_leak / square;
  c.theta = square * (c.theta + gain * c.k);
  c.ratio = c.ratio + Enclosure{gain, gain};
  c.k = square * c.k;
  c.over = square * c.over;
  c.mean = {mean, mean};
}

/// Of a mixture at one variance q: E[phi^2], which rises with q, E[phi'^2] and E[u^2 phi'^2];
/// E[phi], and, but for products, E[phi^2] without the square of that.
struct MomentsAt : Moments {
  double mean, variance = 0;
};

// Of two terms of softplus: K, whose k is q, less its value where k is 0.
double integrals_covariance(double q, MixtureTerm s, MixtureTerm t) {
  const double n = q * (s.s2 + t.s2) + s.s2 * t.s2, w = std::sqrt(n);
  const double at_0 = 1 / std::sqrt(s.over * t.over);
  return (q * upper_angle(w, -q) - q * (q / (w + at_0))) * detail::kOverTwoPi;
}

MomentsAt moments_at(const KernelMap& map, double q) {
  const Mixture& mixture = map.mixture;
  MomentsAt sum{{0, 0, 0}, map.shift};
  for (int t = 0; t < mixture.terms; ++t) {
    const MixtureTerm s{mixture.scale2[t], 1 / (q + mixture.scale2[t])};
    sum.mean += mixture.weight[t] * mixture_mean(map.form, q, s);
    for (int u = 0; u < mixture.terms; ++u) {
      const MixtureTerm other{mixture.scale2[u], 1 / (q + mixture.scale2[u])};
      const Moments m = mixture_moments<true>(map.form, q, s, q, other, q);
      const double weight = mixture.weight[t] * mixture.weight[u];
      sum.value += weight * m.value;
      sum.slope += weight * m.slope;
      sum.cross += weight * m.cross;
      sum.variance +=
          weight * (map.form == Form::integral ? integrals_covariance(q, s, other) : m.value);
    }
  }
  const double square = map.slope * map.slope;  // 1 but for a distribution's
  sum.value = square * sum.value + map.shift * map.shift;
  sum.slope *= square;
  sum.cross *= square;
  sum.variance *= square;
  return sum;
}

/// A product at one variance q. E[phi'^2] is `angle`, which rises with q, plus sums of products of
/// `rising` and `falling` factors.
struct ProductAt : MomentsAt {
  double angle = 0;
  double rising[Mixture::kMost * Mixture::kMost], falling[Mixture::kMost * Mixture::kMost];

  ProductAt(const KernelMap& map, double q) : MomentsAt(moments_at(map, q)) {
    const Mixture& mixture = map.mixture;
    int pair = 0;
    for (int t = 0; t < mixture.terms; ++t)
      for (int u = 0; u < mixture.terms; ++u, ++pair) {
        const double weight = mixture.weight[t] * mixture.weight[u];
        const double s2 = mixture.scale2[t], t2 = mixture.scale2[u];
        const double of_s = 1 / (q + s2), of_t = 1 / (q + t2), over = std::sqrt(of_s * of_t);
        const double d = q * (s2 + t2) + s2 * t2, v = std::sqrt(d) * over;
        const double ab = s2 * of_s * t2 * of_t;
        angle += weight * upper_angle(std::sqrt(d), -q) * detail::kOverTwoPi;
        rising[pair] = weight * q * over * detail::kOverTwoPi;
        falling[pair] = v + ab / v * (1 + 1 / (v * v));
      }
  }
};

constexpr double kMixtureCrossSlope = 2;  // of all mixtures

/// What an activation makes of a range of q.
struct Activated {
  Enclosure value, slope;  // E[phi^2], E[phi'^2]
  Enclosure value_over_k;
  double cross = 0;  // E[u^2 phi'^2] at the lower end
};

// |d E[u^2 phi'^2] / dq| is at most sup|phi'| (sup|phi'| + sup|u phi''|): `cross_slope`.
void through_activation(const KernelMap& map, const Activated& of, double cross_slope,
                        DiagonalCell& c) {
  const double spread = cross_slope * (c.k.hi - c.k.lo);
  const Enclosure cross{std::max(0.0, of.cross - spread), std::max(0.0, of.cross) + spread};
  const Enclosure shared = map.gain > 0 ? map.gain * cross : Enclosure{};
  c.ratio = c.ratio * (of.slope / of.value_over_k);
  if (map.gain > 0) c.ratio = c.ratio + Enclosure{0, (shared / of.value).hi};
  c.theta = c.theta * of.slope + shared;
  c.over = c.over * of.value_over_k;
  c.k = of.value;
  c.ratio = both(c.ratio, c.theta / c.k);
}

void through_product(const KernelMap& map, DiagonalCell& c) {
  const ProductAt lo(map, c.k.lo), hi(map, c.k.hi);
  Enclosure slope{lo.angle, hi.angle};
  for (int pair = 0; pair < map.mixture.terms * map.mixture.terms; ++pair) {
    slope.lo += lo.rising[pair] * hi.falling[pair];
    slope.hi += hi.rising[pair] * lo.falling[pair];
  }
  // value / k, and mean^2 / k, rise with k.
  const auto over_k = [](double value, double k, double at_zero) {
    return k > 0 ? value / k : at_zero;
  };
  const Enclosure value{lo.value, hi.value};
  const Enclosure value_over_k{over_k(lo.value, c.k.lo, 0.25), over_k(hi.value, c.k.hi, 0.25)};
  const Enclosure mean_over_k{over_k(lo.mean * lo.mean, c.k.lo, 0),
                              over_k(hi.mean * hi.mean, c.k.hi, 0)};
  through_activation(map, {value, slope, value_over_k, lo.cross}, kMixtureCrossSlope, c);
  c.mean = share_of(mean_over_k / value_over_k);
}

// A sum of Gaussians: E[phi^2] rises with q; E[phi^2] / q rises or falls, as phi(u)^2 + phi(-u)^2
// does beside u^2, and E[phi] / sqrt(q) rises; E[phi'^2] falls, or moves as is known of it.
void through_gaussians(const KernelMap& map, DiagonalCell& c) {
  // Of q = 0 what is divided by q has the value that it has near it; of infinity, far out.
  constexpr double kLeast = 1e-100, kMost = 1e100;
  const GaussianSum& f = map.gaussians;
  struct At : Moments {
    double value_over_k, mean_over_root;
  };
  const auto at = [&](double k) {
    const double q = std::clamp(k, kLeast, kMost);
    const Moments m = gaussian_moments<true>(f, q, q, q);
    return At{m, m.value / q, gaussian_mean(f, q) / std::sqrt(q)};
  };
  const At lo = at(c.k.lo), hi = at(c.k.hi);
  const auto hull = [](double a, double b) { return Enclosure{std::min(a, b), std::max(a, b)}; };
  Enclosure slope = hull(lo.slope, hi.slope);
  if (f.known.near > 0) {
    const Enclosure root{std::sqrt(c.k.lo), std::sqrt(c.k.hi)};
    const double moved =
        std::min(f.known.near * (root.hi - root.lo), f.known.far * (1 / root.lo - 1 / root.hi));
    const double beyond = 0.5 * (moved - (slope.hi - slope.lo));  // as far as there is way left
    slope = {std::max(0.0, slope.lo - beyond), slope.hi + beyond};
  }
  const Enclosure value{c.k.lo > 0 ? lo.value : 0, c.k.hi < kInfinity ? hi.value : kInfinity};
  const Enclosure value_over_k = hull(lo.value_over_k, hi.value_over_k);
  Enclosure mean =
      hull(lo.mean_over_root * lo.mean_over_root, hi.mean_over_root * hi.mean_over_root);
  if (lo.mean_over_root < 0 && hi.mean_over_root > 0) mean.lo = 0;
  through_activation(map, {value, slope, value_over_k, c.k.lo > 0 ? lo.cross : 0},
                     f.known.cross_slope, c);
  c.mean = share_of(mean / value_over_k);
}

// The square of E[phi], which does not fall with q, as a share of E[phi^2]: 1 where phi hardly
// varies.
Enclosure share_of_mean(const MomentsAt& lo, const MomentsAt& hi) {
  constexpr double kRounded = 16 * std::numeric_limits<double>::epsilon();
  if (hi.mean == 0) return {0, 0};
  return {lo.mean * lo.mean / hi.value * (1 - kRounded),
          std::min(1.0, hi.mean * hi.mean / lo.value * (1 + kRounded))};
}

// tanh, sigmoid: phi' falls with |u|, so E[phi'^2] does with q. softplus: E[phi'^2], which is
// sigmoid's E[phi^2], rises. Of all |phi| / |u| falls with |u|, so E[phi^2] / q does with q: from
// E[phi'^2] of q = 0, or, where phi(0) is not 0, from infinity.
void through_distribution_or_integral(const KernelMap& map, DiagonalCell& c) {
  const MomentsAt lo = moments_at(map, c.k.lo), hi = moments_at(map, c.k.hi);
  const bool falls = map.form == Form::distribution;
  const Enclosure slope{falls ? hi.slope : lo.slope, falls ? lo.slope : hi.slope};
  const Enclosure value{lo.value, hi.value}, mean = share_of_mean(lo, hi);
  const auto over_k = [&](const MomentsAt& at, double k) {
    return k > 0 ? at.value / k : at.value > 0 ? kInfinity : at.slope;
  };
  const Enclosure value_over_k{over_k(hi, c.k.hi), over_k(lo, c.k.lo)};
  // Narrow far out, as `mean` is where phi hardly varies: E[phi]^2 / q falls, too.
  const auto mean_squared_over = [&](const MomentsAt& at, double k) {
    return k > 0 ? at.mean * at.mean / k : kInfinity;
  };
  const Enclosure mean_over_k{mean_squared_over(hi, c.k.hi), mean_squared_over(lo, c.k.lo)};
  // The variance over q is the mean of E[phi' phi'] over correlations from 0 to 1 (dK/dk is that),
  // of which each moves with q as E[phi'^2] does.
  const auto varied_over_k = [&](const MomentsAt& at, double k) {
    return k > 0 ? at.variance / k : at.slope;
  };
  const MomentsAt &least = falls ? hi : lo, &most = falls ? lo : hi;
  const Enclosure of_k{varied_over_k(least, falls ? c.k.hi : c.k.lo),
                       varied_over_k(most, falls ? c.k.lo : c.k.hi)};
  const Enclosure ratio = c.ratio * (slope / of_k);
  through_activation(map, {value, slope, value_over_k, lo.cross}, kMixtureCrossSlope, c);
  c.mean = map.offset() ? both(mean, mean_over_k / value_over_k) : mean;
  c.varied = {map.offset(), {lo.variance, hi.variance}, ratio};
  if (map.gain > 0) c.varied.ratio = {0, kInfinity};
}

void through_layer_norm(const KernelMap& map, const Varied& varied, DiagonalCell& c) {
  const Enclosure kept{1 - map.centred * c.mean.hi, 1 - map.centred * c.mean.lo};
  Enclosure variance = c.k * kept;
  const auto scaled = [&](double v) { return v > 0 ? v / (v + map.eps) : 0; };
  const Enclosure constant{map.constant, map.constant};
  Enclosure theta = c.theta, ratio = c.ratio;
  if (map.gain > 0) {
    const Enclosure share = map.gain * c.mean;  // of K
    theta = theta + share * c.k;
    ratio = ratio + share;
  }
  ratio = ratio / kept;
  if (varied.known && map.centred != 0) {
    variance = both(variance, varied.variance);
    ratio = both(ratio, varied.ratio);
  }
  c.over = c.over * (kept / (variance + Enclosure{map.eps, map.eps}));
  c.k = {scaled(variance.lo), scaled(variance.hi)};
  c.theta = both(theta / (variance + Enclosure{map.eps, map.eps}), ratio * c.k) + constant;
  c.ratio = both(ratio + constant / c.k, c.theta / c.k);
  if (map.centred != 0) c.mean = {0, 0};  // else it shrinks as the root of K does
}

// The sum's ratio is the mean of both, weighed by 1 and `over`, in which it is monotone.
void through_add(const KernelMap& map, const DiagonalCell& kept, DiagonalCell& c) {
  const Enclosure over = both(c.over, c.k / kept.k), of_kept{1 / (1 + over.hi), 1 / (1 + over.lo)};
  // Sums of terms that are not negative: nothing cancels, however far apart a and b are.
  const auto mean_of = [&](double a, double b, double over) {
    if (over == 0) return a;
    if (std::isinf(over)) return b;
    return over <= 1 ? (a + over * b) / (1 + over) : (a / over + b) / (1 / over + 1);
  };
  const Enclosure a = kept.ratio + Enclosure{map.gain, map.gain},
                  b = c.ratio + Enclosure{map.from_k, map.from_k};
  const Enclosure ratio{std::min(mean_of(a.lo, b.lo, over.lo), mean_of(a.lo, b.lo, over.hi)),
                        std::max(mean_of(a.hi, b.hi, over.lo), mean_of(a.hi, b.hi, over.hi))};
  c.theta = c.theta + map.from_k * c.k + kept.theta + map.gain * kept.k;
  c.k = c.k + kept.k;
  c.ratio = both(ratio, c.theta / c.k);
  c.mean = of_kept * kept.mean;
}

}  // namespace

void through(const KernelMap& map, DiagonalCell& c, DiagonalCell& kept) {
  const Varied varied = std::exchange(c.varied, Varied{});
  switch (map.kind) {
    case KernelMap::Kind::dense:
      return through_dense(map, kept, c);
    case KernelMap::Kind::relu:
      return through_relu(map, c);
    case KernelMap::Kind::mixture:
      if (map.form == Form::product) return through_product(map, c);
      return through_distribution_or_integral(map, c);
    case KernelMap::Kind::gaussians:
      return through_gaussians(map, c);
    case KernelMap::Kind::layer_norm:
      return through_layer_norm(map, varied, c);
    case KernelMap::Kind::keep:
      c.varied = varied;
      kept = c;
      c.over = {1, 1};
      return;
    case KernelMap::Kind::add:
      return through_add(map, kept, c);
  }
}

}  // namespace keel
