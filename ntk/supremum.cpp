#include "supremum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "../core/error.h"

namespace keel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNear = 1e-30, kNearest = 1e-120, kFar = 1e30, kSlack = 1e-6, kTie = 1e-9;
constexpr const char* kOrdinary = "variances and eps of ordinary sizes";

/// What lies between lo and hi, 0 <= lo <= hi <= infinity.
struct Range {
  double lo = 0, hi = 0;
};

Range both(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Range operator+(Range a, Range b) { return {a.lo + b.lo, a.hi + b.hi}; }
Range operator*(double s, Range a) { return {s * a.lo, s * a.hi}; }

// 0 times infinity and 0 / 0 may be anything.
Range operator*(Range a, Range b) {
  const double hi = a.hi * b.hi, lo = a.lo * b.lo;
  return {std::isnan(lo) ? 0 : lo, std::isnan(hi) ? kInfinity : hi};
}
Range operator/(Range a, Range b) {
  const double hi = a.hi / b.lo, lo = a.lo / b.hi;
  return {std::isnan(lo) ? 0 : lo, std::isnan(hi) ? kInfinity : hi};
}

/// The diagonal over a range of r. `ratio`, Theta / K, varies little where K and Theta themselves
/// span decades; `mean`: (the mean of the values)^2 / K; `over`: K / K kept, within a residual.
struct Cell {
  Range k, theta, ratio, mean, over;
};

void through_dense(const KernelMap& map, const Cell& kept, Cell& c) {
  // (weight ratio + from_k + constant / k) / (weight + bias / k), which is monotone in 1 / k.
  const auto ratio_at = [&](double ratio, double k) {
    if (std::isinf(k)) return (map.weight * ratio + map.from_k) / map.weight;
    return (k * (map.weight * ratio + map.from_k) + map.constant) / (k * map.weight + map.bias);
  };
  Range ratio{0, kInfinity};
  if (c.k.lo > 0 && c.ratio.hi < kInfinity)
    ratio = {std::min(ratio_at(c.ratio.lo, c.k.lo), ratio_at(c.ratio.lo, c.k.hi)),
             std::max(ratio_at(c.ratio.hi, c.k.lo), ratio_at(c.ratio.hi, c.k.hi))};
  c.theta = map.weight * c.theta + map.from_k * c.k + Range{map.constant, map.constant};
  c.k = map.weight * c.k + Range{map.bias, map.bias};
  c.over = map.weight * c.over + Range{map.bias, map.bias} / kept.k;
  c.ratio = both(ratio, c.theta / c.k);
  c.mean = {0, 0};
}

void through_relu(const KernelMap& map, Cell& c) {
  const double square = 0.5 * (1 + map.leak * map.leak), left = 1 - map.leak;
  const double mean = detail::kOverTwoPi * left * left / square;
  c.theta = square * (c.theta + map.gain * c.k);
  c.ratio = c.ratio + Range{map.gain, map.gain};
  c.k = square * c.k;
  c.over = square * c.over;
  c.mean = {mean, mean};
}

/// A mixture at one variance q. E[phi'^2] is `angle`, which rises with q, plus sums of products of
/// `rising` and `falling` factors.
struct MixtureAt {
  double value = 0, mean = 0, cross = 0, angle = 0;
  double rising[Mixture::kMost * Mixture::kMost], falling[Mixture::kMost * Mixture::kMost];

  MixtureAt(const Mixture& mixture, double q) {
    int pair = 0;
    for (int t = 0; t < mixture.terms; ++t) {
      const MixtureTerm s{mixture.scale2[t], 1 / (q + mixture.scale2[t])};
      mean += mixture.weight[t] * mixture_mean(q, s);
      for (int u = 0; u < mixture.terms; ++u, ++pair) {
        const double weight = mixture.weight[t] * mixture.weight[u];
        const MixtureTerm other{mixture.scale2[u], 1 / (q + mixture.scale2[u])};
        const Moments m = mixture_moments<true>(false, q, s, q, other, q);
        const double over = std::sqrt(s.over * other.over);
        const double d = q * (s.s2 + other.s2) + s.s2 * other.s2, v = std::sqrt(d) * over;
        const double ab = s.s2 * s.over * other.s2 * other.over;
        value += weight * m.value;
        cross += weight * m.cross;
        angle += weight * upper_angle(std::sqrt(d), -q) * detail::kOverTwoPi;
        rising[pair] = weight * q * over * detail::kOverTwoPi;
        falling[pair] = v + ab / v * (1 + 1 / (v * v));
      }
    }
  }
};

/// What an activation makes of a range of q.
struct Activated {
  Range value, slope;  // E[phi^2], E[phi'^2]
  Range value_over_k;
  double cross = 0;  // E[u^2 phi'^2] at the lower end
};

// |d E[u^2 phi'^2] / dq| is at most sup|phi'| (sup|phi'| + sup|u phi''|) < 2, for gelu, silu and
// tanh.
void through_activation(const KernelMap& map, const Activated& of, Cell& c) {
  constexpr double kCrossSlope = 2;
  const double spread = kCrossSlope * (c.k.hi - c.k.lo);
  const Range cross{std::max(0.0, of.cross - spread), std::max(0.0, of.cross) + spread};
  const Range shared = map.gain > 0 ? map.gain * cross : Range{};
  c.ratio = c.ratio * (of.slope / of.value_over_k);
  if (map.gain > 0) c.ratio = c.ratio + Range{0, (shared / of.value).hi};
  c.theta = c.theta * of.slope + shared;
  c.over = c.over * of.value_over_k;
  c.k = of.value;
  c.ratio = both(c.ratio, c.theta / c.k);
}

void through_mixture(const KernelMap& map, Cell& c) {
  const MixtureAt lo(map.mixture, c.k.lo), hi(map.mixture, c.k.hi);
  Range slope{lo.angle, hi.angle};
  for (int pair = 0; pair < map.mixture.terms * map.mixture.terms; ++pair) {
    slope.lo += lo.rising[pair] * hi.falling[pair];
    slope.hi += hi.rising[pair] * lo.falling[pair];
  }
  // value / k, and mean^2 / k, rise with k.
  const auto over_k = [](double value, double k, double at_zero) {
    return k > 0 ? value / k : at_zero;
  };
  const Range value{lo.value, hi.value};
  const Range value_over_k{over_k(lo.value, c.k.lo, 0.25), over_k(hi.value, c.k.hi, 0.25)};
  const Range mean_over_k{over_k(lo.mean * lo.mean, c.k.lo, 0),
                          over_k(hi.mean * hi.mean, c.k.hi, 0)};
  through_activation(map, {value, slope, value_over_k, lo.cross}, c);
  c.mean = mean_over_k / value_over_k;
}

// Of phi = 2 F - 1 at one variance q: E[phi^2], which rises with q, E[phi'^2], which falls, and
// E[u^2 phi'^2].
Moments distribution_at(const Mixture& mixture, double q) {
  Moments sum{0, 0, 0};
  for (int t = 0; t < mixture.terms; ++t)
    for (int u = 0; u < mixture.terms; ++u) {
      const Moments m =
          mixture_moments<true>(true, q, {mixture.scale2[t], 1 / (q + mixture.scale2[t])}, q,
                                {mixture.scale2[u], 1 / (q + mixture.scale2[u])}, q);
      const double weight = mixture.weight[t] * mixture.weight[u];
      sum = {sum.value + weight * m.value, sum.slope + weight * m.slope,
             sum.cross + weight * m.cross};
    }
  return sum;
}

// phi is concave where u > 0, so E[phi^2]/q falls with q, from E[phi'^2] of q = 0.
void through_distribution(const KernelMap& map, Cell& c) {
  const Moments lo = distribution_at(map.mixture, c.k.lo),
                hi = distribution_at(map.mixture, c.k.hi);
  const Range slope{hi.slope, lo.slope}, value{lo.value, hi.value};
  const Range value_over_k{c.k.hi > 0 ? hi.value / c.k.hi : hi.slope,
                           c.k.lo > 0 ? lo.value / c.k.lo : lo.slope};
  through_activation(map, {value, slope, value_over_k, lo.cross}, c);
  c.mean = {0, 0};
}

void through_layer_norm(const KernelMap& map, Cell& c) {
  const Range kept{1 - map.centred * c.mean.hi, 1 - map.centred * c.mean.lo};
  const Range variance = c.k * kept;
  const auto scaled = [&](double v) { return v > 0 ? v / (v + map.eps) : 0; };
  const Range constant{map.constant, map.constant};
  Range theta = c.theta, ratio = c.ratio;
  if (map.gain > 0) {
    const Range share = map.gain * c.mean;  // of K
    theta = theta + share * c.k;
    ratio = ratio + share;
  }
  ratio = ratio / kept;
  c.over = c.over * (kept / (variance + Range{map.eps, map.eps}));
  c.k = {scaled(variance.lo), scaled(variance.hi)};
  c.theta = both(theta / (variance + Range{map.eps, map.eps}), ratio * c.k) + constant;
  c.ratio = both(ratio + constant / c.k, c.theta / c.k);
  if (map.centred != 0) c.mean = {0, 0};  // else it shrinks as the root of K does
}

// The sum's ratio is the mean of both, weighed by 1 and `over`, in which it is monotone.
void through_add(const KernelMap& map, const Cell& kept, Cell& c) {
  const Range over = both(c.over, c.k / kept.k), of_kept{1 / (1 + over.hi), 1 / (1 + over.lo)};
  const auto mean_of = [&](double a, double b, double share) {
    return share == 0 ? b : share == 1 ? a : b + share * (a - b);
  };
  const Range a = kept.ratio + Range{map.gain, map.gain},
              b = c.ratio + Range{map.from_k, map.from_k};
  const Range ratio{std::min(mean_of(a.lo, b.lo, of_kept.lo), mean_of(a.lo, b.lo, of_kept.hi)),
                    std::max(mean_of(a.hi, b.hi, of_kept.lo), mean_of(a.hi, b.hi, of_kept.hi))};
  c.theta = c.theta + map.from_k * c.k + kept.theta + map.gain * kept.k;
  c.k = c.k + kept.k;
  c.ratio = both(ratio, c.theta / c.k);
  c.mean = of_kept * kept.mean;
}

void through(const KernelMap& map, Cell& c, Cell& kept) {
  switch (map.kind) {
    case KernelMap::Kind::dense:
      return through_dense(map, kept, c);
    case KernelMap::Kind::relu:
      return through_relu(map, c);
    case KernelMap::Kind::mixture:
      return through_mixture(map, c);
    case KernelMap::Kind::distribution:
      return through_distribution(map, c);
    case KernelMap::Kind::layer_norm:
      return through_layer_norm(map, c);
    case KernelMap::Kind::keep:
      kept = c;
      c.over = {1, 1};
      return;
    case KernelMap::Kind::add:
      return through_add(map, kept, c);
  }
}

/// Exponents of |x|, far away, of K and Theta.
struct Growth {
  double k = 2, theta = 2;
};

// A norm divides both by K. A tanh leaves K no more than 1, but Theta is multiplied by E[phi'^2],
// which falls like r^-1/2 only where K grew like r; no norm behind divides it any more.
void follow(const KernelMap& map, Growth& g, Growth& kept) {
  switch (map.kind) {
    case KernelMap::Kind::layer_norm:
      g = {0, g.theta - g.k};
      break;
    case KernelMap::Kind::distribution:
      g = {0, g.theta - 0.5 * g.k};
      break;
    case KernelMap::Kind::keep:
      kept = g;
      break;
    case KernelMap::Kind::add:
      g = {std::max(g.k, kept.k), std::max(g.theta, kept.theta)};
      break;
    default:
      break;
  }
}

double upper_bound(const std::vector<KernelMap>& maps, bool theta, double r_lo, double r_hi) {
  Cell c, kept;
  c.k = {r_lo, r_hi};
  for (const KernelMap& map : maps) through(map, c, kept);
  return theta ? c.theta.hi : c.k.hi;
}

double value_at(const std::vector<KernelMap>& maps, bool theta, double r) {
  Diagonal d{r, 0, 0};
  for (const KernelMap& map : maps) follow(map, d, [](int, double) {});
  return theta ? d.theta : d.k;
}

}  // namespace

Supremum supremum_of(const std::vector<KernelMap>& maps, bool theta) {
  Supremum found;
  bool without_eps = false;
  Growth growth, kept;
  for (const KernelMap& map : maps) {
    without_eps = without_eps || (map.kind == KernelMap::Kind::layer_norm && map.eps == 0);
    follow(map, growth, kept);
  }
  found.growth = theta ? growth.theta : growth.k;
  if (found.growth > 0) {
    found.value = found.at = found.limit = kInfinity;
    return found;
  }

  struct Open {
    double upper, lo, hi;  // lo, hi: log r
    bool operator<(const Open& other) const { return upper < other.upper; }
  };
  std::priority_queue<Open> open;
  double best = -kInfinity;
  const auto try_at = [&](double r) {
    const double value = value_at(maps, theta, r);
    if (value <= best) return;
    best = value;
    found.at = r;
  };
  const auto add = [&](double lo, double hi) {
    open.push({upper_bound(maps, theta, std::exp(lo), std::exp(hi)), lo, hi});
  };
  found.limit = value_at(maps, theta, kFar);
  check(std::abs(value_at(maps, theta, kLongest) - found.limit) <= kSlack * found.limit, "supremum",
        "got a kernel that is {} at |x|^2 / n0 = {:g} and {} at {:g}, wanted its limit: {}",
        found.limit, kFar, value_at(maps, theta, kLongest), kLongest, kOrdinary);
  if (without_eps &&
      value_at(maps, theta, kNearest * kNear) > 2 * value_at(maps, theta, kNearest)) {
    // Without biases and eps, a layer norm magnifies what does not vanish with x.
    found.value = kInfinity;
    return found;
  }
  // Without biases, norms one behind the other each magnify by 1 / eps what is small.
  const auto changes_below = [&](double r) {
    return !(std::abs(value_at(maps, theta, r * kNear) - value_at(maps, theta, r)) <=
             kSlack * std::max(found.limit, value_at(maps, theta, r)));
  };
  double near = kNear;
  while (near > kNearest && changes_below(near)) near = std::max(near * kNear, kNearest);
  check(!changes_below(near), "supremum",
        "got a kernel that still changes below |x|^2 / n0 = {:g}, wanted its limit: {}", near,
        kOrdinary);
  found.bounded = true;
  try_at(kFar);
  try_at(0);
  add(std::log(near * kNear), std::log(near));  // where it changes by no more than that
  constexpr int kStart = 60, kMostCells = 4'000'000;
  const double begin = std::log(near), width = (std::log(kFar) - begin) / kStart;
  for (int i = 0; i < kStart; ++i) {
    try_at(std::exp(begin + i * width));
    add(begin + i * width, begin + (i + 1) * width);
  }
  int cells = kStart;
  for (; open.top().upper > best + kSlack * std::abs(best); ++cells) {
    check(cells < kMostCells, "supremum", "got between {} and {} after {} cells, wanted 1e-6", best,
          open.top().upper, cells);
    const Open cell = open.top();
    open.pop();
    const double middle = 0.5 * (cell.lo + cell.hi);
    try_at(std::exp(middle));
    add(cell.lo, middle);
    add(middle, cell.hi);
  }
  constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();  // of f itself
  found.value = std::max(best, open.top().upper) * (1 + kRounding);
  if (found.limit >= best * (1 - kTie)) found.at = kInfinity;
  return found;
}

}  // namespace keel
