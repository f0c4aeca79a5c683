#include "tail_bound.h"

#include <algorithm>
#include <cmath>

#include "../core/each_in_parallel.h"
#include "../kernels/one_blas_thread.h"
#include "branch.h"
#include "descent.h"
#include "first_units.h"
#include "length.h"
#include "norm_image.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// A power of two by which a dual's weights v are divided: squares of its multipliers, which are
// about v times the units' scales, must not leave double.
double unit_of(const Vector& v, const Units& units) {
  constexpr double kSmall = 1e-60, kLarge = 1e60;
  double largest = 0;
  for (std::size_t j = 0; j < v.size(); ++j)
    largest = std::max(largest, std::abs(v[j]) * units.scale[j]);
  if (largest == 0 || !std::isfinite(largest)) return 1;
  return largest > kSmall && largest < kLarge ? 1 : std::exp2(std::ilogb(largest));
}

class TailBounds {
 public:
  TailBounds(const Tail& tail, const NetBoundOptions& options)
      : tail_(tail), options_(options), rows_(tail) {}

  std::vector<Interval> outputs() {
    std::vector<Interval> intervals = linear_intervals(tail_.affine[0], tail_.set);
    for (std::size_t l = 0; l < tail_.activations.size(); ++l) {
      layers_.push_back(l == 0 ? first_units(tail_, rows_, intervals) : later_units(l, intervals));
      intervals = next_intervals(l + 1);
    }
    return intervals;
  }

 private:
  // Beyond, a kappa for every unit would take an eigendecomposition too long at every step.
  static constexpr std::int64_t kOutputRank = 96, kUnitRank = 24;

  // Couplings take n^3, all else n^2: of wide layers they may not move at every step, nor where
  // there are many bounds to find.
  std::int64_t steps_to_couplings(std::size_t depth, std::size_t ends) const {
    constexpr std::size_t kFewEnds = 4, kSeldom = 30;
    constexpr double kWidth = 128;
    double widest = kWidth;
    for (std::size_t l = 1; l < depth; ++l)
      widest = std::max(widest, static_cast<double>(layers_[l].from.inputs));
    return static_cast<std::int64_t>(std::pow(widest / kWidth, 2)) *
           static_cast<std::int64_t>(std::clamp<std::size_t>(ends / kFewEnds, 1, kSeldom));
  }

  Units later_units(std::size_t l, const std::vector<Interval>& intervals) const {
    Units units;
    units.activation = tail_.activations[l];
    units.kept = tail_.kept[l];
    units.from = tail_.affine[l];
    const Vector& before = layers_[l - 1].centre;
    units.origin = affine_at(units.from, before);
    for (std::size_t i = 0; i < units.origin.size(); ++i)
      units.scale.push_back(std::max(std::abs(intervals[i].high - units.origin[i]),
                                     std::abs(intervals[i].low - units.origin[i])));
    units.from_sizes = weight_sizes(units.from);
    units.summed = bias_sizes(units.from);
    for (std::size_t i = 0; i < units.origin.size(); ++i)
      for (std::size_t j = 0; j < before.size(); ++j)
        units.summed[i] += units.from_sizes[i * before.size() + j] * std::abs(before[j]);
    set_ends(units, intervals);
    units.centre = centres(units, 0.25);
    return units;
  }

  static double side_of(std::size_t end) { return end % 2 == 0 ? 1 : -1; }

  // Of what affine map l makes of the layers before it.
  std::vector<Interval> next_intervals(std::size_t l) const {
    const Affine& map = tail_.affine[l];
    const NormImage* image = tail_.set.image.get();
    const bool last = l == tail_.activations.size();
    const std::size_t cols = static_cast<std::size_t>(map.inputs), ends = 2 * map.bias.size();
    const std::int64_t pace = steps_to_couplings(l, ends);
    const DescentSteps steps{last ? options_.steps : options_.unit_steps, pace, options_.stop},
        image_steps{last ? options_.image_steps : options_.unit_image_steps, pace, options_.stop};
    // One layer's dual has next to no gap that cutting its units would close.
    const std::int64_t pieces =
        last && l > 1 ? options_.pieces / static_cast<std::int64_t>(ends) : 0;
    const bool one_kappa = rows_.signs_alone() || rows_.rank() > (last ? kOutputRank : kUnitRank);
    const TailDual dual(rows_, tail_.set, layers_, l, one_kappa);
    const TailDual with_image(rows_, tail_.set, layers_, l, one_kappa, image != nullptr);
    const Vector weight_of = weight_sizes(map), bias_of = bias_sizes(map);
    std::vector<Interval> result(map.bias.size());
    std::vector<TailDual::Value> found(ends);  // of an output's high end, and of its low one,
    Vector unit(ends);                         // in units of this, less the bias
    std::vector<Vector> v(pieces > 0 ? ends : 0);
    std::vector<Descent> descents(v.size());
    each_in_parallel(ends, [&](std::size_t end) {
      const OneBlasThread one;
      const std::size_t i = end / 2;
      Vector of_end(cols);
      for (std::size_t j = 0; j < cols; ++j) of_end[j] = side_of(end) * map.weight[i * cols + j];
      unit[end] = unit_of(of_end, layers_[l - 1]);
      for (double& weight : of_end) weight /= unit[end];
      Descent least = descend(dual, layers_, of_end, 0, rows_.rank(), steps);
      if (image)
        least = descend_with_image(dual, with_image, *image, layers_, of_end, 0, rows_.rank(),
                                   image_steps, least);
      found[end] = least.least;
      if (pieces == 0) return;
      v[end] = std::move(of_end);
      descents[end] = std::move(least);
    });
    for (std::size_t end = 0; end < ends; ++end) {
      const std::size_t i = end / 2;
      if (pieces > 0) {
        const bool by_image = descents[end].x.size() > dual.multipliers().size;
        found[end] = branch({.dual = by_image ? with_image : dual,
                             .image = by_image ? image : nullptr,
                             .layers = layers_,
                             .v = v[end],
                             .constant = 0,
                             .rank = rows_.rank(),
                             .pieces = pieces,
                             .steps = {options_.piece_steps, pace, options_.stop}},
                            descents[end]);
      }
      // What the map itself lost when it was multiplied out, beside what the dual knows of it.
      // A unit that is there has more than a margin of kLeastSize; of one that is 0 a dual leaves
      // some 1e-299.
      constexpr double kStill = 1e-295;
      double lost = bias_of[i];
      bool varies = false;
      for (std::size_t j = 0; j < cols; ++j) {
        const double weight = weight_of[i * cols + j], reach = layers_[l - 1].reach(j);
        varies = varies || (weight != 0 && reach > kStill);
        lost += weight * reach;
      }
      check(!varies || !(lost < kLeastSize), "net_bound",
            "got weights so small that what they make of the layer before is {} in double, wanted "
            "larger ones",
            lost);
      const double most = unit[end] * (found[end].bound + kMargin * found[end].size);
      (end % 2 == 0 ? result[i].high : result[i].low) =
          map.bias[i] + side_of(end) * (most + kMargin * lost);
    }
    // What a dual does at multipliers of 0, but for rounding, which it measures by z, and tanh is
    // much smaller.
    const std::vector<Interval> all_apart = outputs_within(map, ranges_before(), kMargin);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Interval& apart = all_apart[i];
      if (std::isnan(apart.low) || std::isnan(apart.high)) continue;
      if (!(result[i].high <= apart.high)) result[i].high = apart.high;
      if (!(result[i].low >= apart.low)) result[i].low = apart.low;
    }
    for (const Interval& of : result)
      check(std::isfinite(of.low) && std::isfinite(of.high), "net_bound",
            "got weights so large that a bound is [{}, {}] in double", of.low, of.high);
    return result;
  }

  // What the units of the layer before may give.
  std::vector<Interval> ranges_before() const {
    const Units& before = layers_.back();
    std::vector<Interval> ranges;
    for (std::size_t j = 0; j < before.size(); ++j) {
      const auto z = [&](double y) { return before.origin[j] + before.scale[j] * y; };
      const double rounded = kMargin * before.summed[j];
      ranges.push_back(
          before.phi(j).range(z(before.low[j]) - rounded, z(before.high[j]) + rounded));
    }
    return ranges;
  }

  const Tail& tail_;
  const NetBoundOptions& options_;
  UnitRows rows_;
  std::vector<Units> layers_{};
};

// A linear tail as one with a relu that none of its set turns off, for a dual to work on.
Tail with_open_units(Tail tail) {
  Affine& map = tail.affine[0];
  const auto cols = static_cast<std::size_t>(map.inputs), rows = map.bias.size();
  Affine back{map.outputs, map.outputs, Vector(rows * rows), Vector(rows)};
  map.weight_sizes = weight_sizes(map);
  back.bias_sizes = bias_sizes(map);
  map.bias_sizes.clear();
  for (std::size_t i = 0; i < rows; ++i) {
    const double open = 2 * length_of(&map.weight[i * cols], cols);
    back.weight[i * rows + i] = 1;
    back.bias[i] = map.bias[i] - open;
    back.bias_sizes[i] += open;
    map.bias[i] = open;
  }
  tail.push_back(LayerKind::relu);
  tail.affine.push_back(std::move(back));
  return tail;
}

}  // namespace

std::vector<Interval> bound_tail(const Tail& tail, const NetBoundOptions& options) {
  check(options.steps >= 1 && options.unit_steps >= 1, "net_bound",
        "got {} and {} steps, wanted at least 1", options.steps, options.unit_steps);
  check(options.pieces >= 0 && options.piece_steps >= 1, "net_bound",
        "got {} pieces of {} steps, wanted at least 0 of 1", options.pieces, options.piece_steps);
  const bool linear = tail.activations.empty();
  if (linear && (!tail.set.cone.empty() || tail.set.image))
    return TailBounds(with_open_units(tail), options).outputs();
  return TailBounds(tail, options).outputs();
}

}  // namespace keel
