#include "net_bound.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "../kernels/one_blas_thread.h"
#include "descent.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr double kMargin = 1e-9;  // of all that is summed: ten million roundings of double

// Of every unit, over the set; exact.
std::vector<Interval> linear_intervals(const Affine& map, const NormSet& set) {
  std::vector<Interval> result;
  const auto k = static_cast<std::size_t>(map.inputs);
  for (std::size_t i = 0; i < map.bias.size(); ++i) {
    double all = 0, up = 0, down = 0;  // squares; the last coordinate only in its own sense
    for (std::size_t j = 0; j < k; ++j) {
      const double a = map.weight[i * k + j];
      all += a * a;
      const bool one_way = set.half && j + 1 == k;
      if (!one_way || a > 0) up += a * a;
      if (!one_way || a < 0) down += a * a;
    }
    const double margin = kMargin * (std::sqrt(all) + std::abs(map.bias[i]));
    result.push_back(
        {map.bias[i] - std::sqrt(down) - margin, map.bias[i] + std::sqrt(up) + margin});
  }
  return result;
}

// At least the largest eigenvalue of weight^T weight: its own, widened, or the sum of all.
double squared_norm(const Affine& map) {
  const bool wide = map.outputs < map.inputs;
  const std::int64_t n = wide ? map.outputs : map.inputs;
  const auto rows = static_cast<std::size_t>(map.outputs),
             cols = static_cast<std::size_t>(map.inputs), size = static_cast<std::size_t>(n);
  Vector gram(size * size);
  double trace = 0;
  for (double weight : map.weight) trace += weight * weight;
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b <= a; ++b)
      for (std::size_t k = 0; k < (wide ? cols : rows); ++k)
        gram[a * size + b] += wide ? map.weight[a * cols + k] * map.weight[b * cols + k]
                                   : map.weight[k * cols + a] * map.weight[k * cols + b];
  const Vector values = symmetric_eigen(Tensor::from(gram, {n, n})).to_vector<double>();
  return std::min(trace * (1 + kMargin), values.back() + kMargin * trace);
}

// Half a typical deviation to either side of the middle: about where the values' mean is.
Vector centres(const Units& units, double spread) {
  Vector result;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const double step = spread * units.scale[i];
    result.push_back(0.5 * (activation(units.activation, units.origin[i] + step) +
                            activation(units.activation, units.origin[i] - step)));
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

class TailBounds {
 public:
  TailBounds(const Tail& tail, const NetBoundOptions& options)
      : tail_(tail), options_(options), rows_(tail) {}

  std::vector<Interval> outputs() {
    std::vector<Interval> intervals = linear_intervals(tail_.affine[0], tail_.set);
    for (std::size_t l = 0; l < tail_.activations.size(); ++l) {
      layers_.push_back(l == 0 ? first_units(intervals) : later_units(l, intervals));
      const bool last = l + 1 == tail_.activations.size();
      intervals = next_intervals(l + 1, last ? options_.steps : options_.unit_steps,
                                 last ? kOutputRank : kUnitRank);
    }
    return intervals;
  }

 private:
  // Beyond, a kappa for every unit would take an eigendecomposition too long at every step.
  static constexpr std::int64_t kOutputRank = 96, kUnitRank = 24;

  Units first_units(const std::vector<Interval>& intervals) const {
    Units units;
    units.activation = tail_.activations[0];
    units.origin = tail_.affine[0].bias;
    units.scale = rows_.lengths();
    set_ends(units, intervals);
    if (rows_.centred())  // constant units have y all the same
      for (std::size_t i = 0; i < units.size(); ++i)
        if (!(units.scale[i] > 0)) {
          units.low[i] = -1;
          units.high[i] = 1;
        }
    units.centre = centres(units, 1 / std::sqrt(std::max(1.0, static_cast<double>(rows_.rank()))));
    return units;
  }

  Units later_units(std::size_t l, const std::vector<Interval>& intervals) const {
    Units units;
    units.activation = tail_.activations[l];
    units.from = tail_.affine[l];
    units.origin = affine_at(units.from, layers_[l - 1].centre);
    for (std::size_t i = 0; i < units.origin.size(); ++i)
      units.scale.push_back(std::max(std::abs(intervals[i].high - units.origin[i]),
                                     std::abs(intervals[i].low - units.origin[i])));
    set_ends(units, intervals);
    units.centre = centres(units, 0.25);
    units.squared_norm = squared_norm(units.from);
    return units;
  }

  // Of what affine map l makes of the layers before it.
  std::vector<Interval> next_intervals(std::size_t l, std::int64_t steps, std::int64_t rank) const {
    const Affine& map = tail_.affine[l];
    const TailDual dual(rows_, tail_.set, layers_, l, rows_.centred() || rows_.rank() > rank);
    std::vector<Interval> result(map.bias.size());
    const auto ends = static_cast<std::int64_t>(2 * result.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t end = 0; end < ends; ++end) {
      const OneBlasThread one;
      const auto i = static_cast<std::size_t>(end / 2), cols = static_cast<std::size_t>(map.inputs);
      const double side = end % 2 == 0 ? 1 : -1;
      Vector v(cols);
      for (std::size_t j = 0; j < cols; ++j) v[j] = side * map.weight[i * cols + j];
      const TailDual::Value least =
          descend(dual, layers_, v, side * map.bias[i], rows_.rank(), steps);
      const double bound = side * (least.bound + kMargin * least.size);
      (side > 0 ? result[i].high : result[i].low) = bound;
    }
    for (const Interval& of : result)
      check(std::isfinite(of.low) && std::isfinite(of.high), "net_bound",
            "got weights so large that a bound is [{}, {}] in double", of.low, of.high);
    return result;
  }

  const Tail& tail_;
  const NetBoundOptions& options_;
  UnitRows rows_;
  std::vector<Units> layers_{};
};

}  // namespace

double NetBound::largest() const {
  double largest = 0;
  for (const Interval& output : outputs)
    largest = std::max({largest, std::abs(output.low), std::abs(output.high)});
  return largest;
}

std::vector<Interval> bound_tail(const Tail& tail, const NetBoundOptions& options) {
  check(options.steps >= 1 && options.unit_steps >= 1, "net_bound",
        "got {} and {} steps, wanted at least 1", options.steps, options.unit_steps);
  return TailBounds(tail, options).outputs();
}

NetBound bound_net(const Net& net, const NetBoundOptions& options) {
  NetBound result;
  if (!has_layer_norm(net.spec())) return result;
  const Tail tail = tail_of(net, options.narrow);
  result.bounded = true;
  result.word = tail.word;
  result.width = tail.set.width;
  result.rank = tail.set.whole ? tail.set.width - 1 : tail.set.rank;
  result.activations = static_cast<std::int64_t>(tail.activations.size());
  result.outputs = bound_tail(tail, options);
  return result;
}

}  // namespace keel
