#include "supremum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "../core/error.h"
#include "diagonal_cell.h"

namespace keel {
namespace {

constexpr double kNear = 1e-30, kNearest = 1e-120, kFar = 1e30, kLeastFar = 1e-20, kSlack = 1e-6,
                 kTie = 1e-9;
constexpr const char* kOrdinary = "variances and eps of ordinary sizes";

/// Exponents of |x|, far away, of K and Theta.
struct Growth {
  double k = 2, theta = 2;
};

// A norm divides both by K. A tanh or sigmoid leaves K no more than 1, but Theta is multiplied by
// E[phi'^2], which falls like r^-1/2 only where K grew like r; no norm behind divides it any more.
void follow(const KernelMap& map, Growth& g, Growth& kept) {
  switch (map.kind) {
    case KernelMap::Kind::layer_norm:
      g = {0, g.theta - g.k};
      break;
    case KernelMap::Kind::mixture:
      if (map.form == Form::distribution) g = {0, g.theta - 0.5 * g.k};
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
  DiagonalCell c, kept;
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

Supremum supremum_of(const std::vector<KernelMap>& maps, bool theta, double farthest) {
  check(farthest >= kLeastFar && (farthest <= kLongest || std::isinf(farthest)), "supremum",
        "got |x|^2 / n0 up to {:g}, wanted {:g} to {:g}", farthest, kLeastFar, kLongest);
  Supremum found;
  // Of f itself, where sums of Gaussians have coefficients of either sign; where a mean that does
  // not vanish is taken away, of what is left beside eps.
  double rounding = 8 * std::numeric_limits<double>::epsilon();
  bool without_eps = false, offset = false;
  Growth growth, kept;
  for (const KernelMap& map : maps) {
    without_eps = without_eps || (map.kind == KernelMap::Kind::layer_norm && map.eps == 0);
    follow(map, growth, kept);
    if (map.kind == KernelMap::Kind::gaussians)
      rounding += 2000 * std::numeric_limits<double>::epsilon();
    offset = map.offset() || (offset && map.kind != KernelMap::Kind::dense);
    if (offset && map.kind == KernelMap::Kind::layer_norm && map.centred != 0 && map.eps > 0)
      rounding += 8 * std::numeric_limits<double>::epsilon() / map.eps;
  }
  found.growth = theta ? growth.theta : growth.k;
  const bool all = found.growth == 0 && farthest >= kFar;
  const double far = all ? kFar : farthest;
  found.limit = found.growth > 0 ? kInfinity : value_at(maps, theta, kFar);
  if (std::isinf(far)) {
    found.value = found.at = kInfinity;
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
  const double at_far = value_at(maps, theta, far);
  check(!all || std::abs(value_at(maps, theta, kLongest) - at_far) <= kSlack * at_far, "supremum",
        "got a kernel that is {} at |x|^2 / n0 = {:g} and {} at {:g}, wanted its limit: {}", at_far,
        kFar, value_at(maps, theta, kLongest), kLongest, kOrdinary);
  if (without_eps &&
      value_at(maps, theta, kNearest * kNear) > 2 * value_at(maps, theta, kNearest)) {
    // Without biases and eps, a layer norm magnifies what does not vanish with x.
    found.value = kInfinity;
    return found;
  }
  // Without biases, norms one behind the other each magnify by 1 / eps what is small.
  const auto changes_below = [&](double r) {
    return !(std::abs(value_at(maps, theta, r * kNear) - value_at(maps, theta, r)) <=
             kSlack * std::max(at_far, value_at(maps, theta, r)));
  };
  double near = kNear;
  while (near > kNearest && changes_below(near)) near = std::max(near * kNear, kNearest);
  check(!changes_below(near), "supremum",
        "got a kernel that still changes below |x|^2 / n0 = {:g}, wanted its limit: {}", near,
        kOrdinary);
  found.bounded = true;
  try_at(far);
  try_at(0);
  add(std::log(near * kNear), std::log(near));  // where it changes by no more than that
  constexpr int kStart = 60, kMostCells = 4'000'000;
  constexpr double kBeyond = 1e-12;  // the last cell is to hold `far`, however exp(log) rounds
  const double begin = std::log(near), width = (std::log(far) + kBeyond - begin) / kStart;
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
  found.value = std::max(best, open.top().upper) * (1 + rounding);
  if (all && found.limit >= best * (1 - kTie)) found.at = kInfinity;
  return found;
}

}  // namespace keel
