#include "first_units.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "../kernels/one_blas_thread.h"
#include "dot.h"
#include "length.h"
#include "shell_maximum.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

// The largest a . u of a ball or of what is left of it by its last coordinate.
double farthest_in_slab(Vector a, const NormSet& set) {
  const double length = length_of(a);
  if (!set.half || length == 0) return length;
  const double along = a.back(), last = std::clamp(along / length, set.last.low, set.last.high);
  if (last == along / length) return length;
  a.back() = 0;
  return last * along + std::sqrt(1 - last * last) * length_of(a);
}

// The least that a convex function takes on [low, high], as far as so many steps find it.
template <class F>
double least_of(const F& f, double low, double high, int steps) {
  double least = kInfinity;
  for (int step = 0; step < steps; ++step) {
    const double third = (high - low) / 3, left = f(low + third), right = f(high - third);
    least = std::min({least, left, right});
    (left > right ? low : high) += left > right ? third : -third;
  }
  return least;
}

// u . (quadric u) in its eigenbasis.
struct Quadric {
  Vector values{}, vectors{};

  explicit Quadric(const NormSet& set) {
    if (set.quadric.empty()) return;
    const OneBlasThread one;
    const Tensor matrix = Tensor::from(set.quadric, {set.rank, set.rank});
    values = symmetric_eigen(matrix).to_vector<double>();
    vectors = matrix.to_vector<double>();
  }
};

// The largest a . u of the set, but for its cone. As side.u + beyond >= 0, and the quadric is, any
// multiple of these may be added: the least is looked for, in a convex function of the multiple.
double farthest(const Vector& a, const NormSet& set, const Quadric& quadric) {
  constexpr int kSteps = 40;
  constexpr double kMost = 4;  // beyond, of |a|: where a points nearly against the side
  double least = farthest_in_slab(a, set);
  const double length = length_of(a);
  if (!set.side.empty())
    least = std::min(least, least_of(
                                [&](double eta) {
                                  Vector g = a;
                                  for (std::size_t i = 0; i < g.size(); ++i)
                                    g[i] += eta * set.side[i];
                                  return farthest_in_slab(g, set) + eta * set.beyond;
                                },
                                0, kMost * length, kSteps));
  if (quadric.values.empty() || length == 0) return least;
  const std::size_t k = a.size();
  Vector along(k);
  for (std::size_t i = 0; i < k; ++i) along[i] = dot(&quadric.vectors[i * k], a.data(), k) / length;
  const auto with = [&](double log_eta) {
    Vector values = quadric.values;
    for (double& value : values) value *= std::exp(log_eta);
    return length * shell_maximum(values, along, set.inner).value;
  };
  return std::min(least, least_of(with, -20, 40, kSteps));
}

}  // namespace

std::vector<Interval> linear_intervals(const Affine& map, const NormSet& set) {
  if (set.box) return std::vector<Interval>(map.bias.size(), set.ends);
  std::vector<Interval> result;
  const Vector summed = output_sizes(map);
  const auto k = static_cast<std::size_t>(map.inputs);
  const Quadric quadric(set);
  for (std::size_t i = 0; i < map.bias.size(); ++i) {
    Vector row(&map.weight[i * k], &map.weight[i * k] + k);
    const double margin = kMargin * summed[i], up = farthest(row, set, quadric);
    for (double& a : row) a = -a;
    result.push_back(
        {map.bias[i] - farthest(row, set, quadric) - margin, map.bias[i] + up + margin});
  }
  return result;
}

Vector centres(const Units& units, double spread) {
  Vector result;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const double step = spread * units.scale[i];
    const Activation phi = units.phi(i);
    result.push_back(0.5 * (phi(units.origin[i] + step) + phi(units.origin[i] - step)));
  }
  return result;
}

void set_ends(Units& units, const std::vector<Interval>& intervals) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const double scale = units.scale[i], origin = units.origin[i];
    units.low.push_back(scale > 0 ? (intervals[i].low - origin) / scale : 0);
    units.high.push_back(scale > 0 ? (intervals[i].high - origin) / scale : 0);
  }
}

Units first_units(const Tail& tail, const UnitRows& rows, const std::vector<Interval>& intervals) {
  Units units;
  units.activation = tail.activations[0];
  units.kept = tail.kept[0];
  units.origin = tail.affine[0].bias;
  const Interval& ends = tail.set.ends;
  units.scale =
      tail.set.box ? Vector(rows.lengths().size(), 0.5 * (ends.high - ends.low)) : rows.lengths();
  units.summed = output_sizes(tail.affine[0]);
  set_ends(units, intervals);
  if (rows.signs_alone())  // constant units have y all the same
    for (std::size_t i = 0; i < units.size(); ++i)
      if (!(units.scale[i] > 0)) {
        units.low[i] = -1;
        units.high[i] = 1;
      }
  units.centre = centres(units, 1 / std::sqrt(std::max(1.0, static_cast<double>(rows.rank()))));
  return units;
}

}  // namespace keel
