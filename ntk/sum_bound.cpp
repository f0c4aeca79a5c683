#include "sum_bound.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "margin.h"
#include "scalar_maximum.h"
#include "tail_bound.h"
#include "tail_builder.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// `map` of what the sum gives, as a sum.
TailSum mapped(TailSum sum, Affine map) {
  for (TailTerm& term : sum) {
    TailBuilder tail(std::move(term.tail));
    tail.dense(map);
    term.tail = tail.tail();
    map = linear_part(std::move(map));  // the bias once
  }
  return sum;
}

// How a line is laid over a unit's activation.
enum class Line { chord, fitted };

/// phi on its interval, and the slope of a line beside it, of which w phi is above by little.
struct Unit {
  static constexpr double kLeastSlope = 1e-30;  // below, products of weights would leave double

  Activation phi;
  Interval z;
  double middle() const { return z.low + 0.5 * (z.high - z.low); }
  double half() const { return std::max(z.high - middle(), middle() - z.low); }
  double slope(double w, Line line) const {
    if (phi.kinked() && phi.slope == 1) return 1;
    double low = z.low, high = z.high;
    // A convex function is below its chord; above it has a tangent.
    if (w < 0 && line == Line::fitted) {
      if (phi.kinked()) return z.low + z.high > 0 ? 1 : phi.slope;
      low = middle() - 0.5 * half();
      high = middle() + 0.5 * half();
    }
    const double chord = high > low ? (phi(high) - phi(low)) / (high - low) : 0;
    return std::abs(chord) > kLeastSlope ? chord : 0;
  }
  Interval range() const { return phi.range(z.low, z.high); }
  // Of w phi(z) - sigma (z - middle).
  double most(double w, double sigma) const {
    const Interval values = range();
    const double tolerance = 1e-7 * std::abs(w) * (values.high - values.low);
    return scalar_maximum(
               {.phi = phi, .w = w, .sigma = sigma * half(), .origin = middle(), .scale = half()},
               tolerance)
        .value;
  }
  double reach() const {
    const Interval values = range();
    return std::max(std::abs(values.low), std::abs(values.high));
  }
};

// A bound of v . h, h what a layer of units gives: `constant` and a linear map of the layer's z;
// rounding of each is measured by `lost` and `sizes`.
struct Linear {
  double constant = 0, lost = 0;
  Vector v{}, sizes{};
};

/// A tail of a sum.
class BoundAbove {
 public:
  BoundAbove(const TailTerm& term, const NetBoundOptions& options)
      : tail_(term.tail), below_(*term.below), options_(options), unit_options_(options) {
    unit_options_.steps = options.unit_steps;
    unit_options_.image_steps = options.unit_image_steps;
    unit_options_.pieces = 0;
  }

  std::vector<Interval> outputs() {
    std::vector<Interval> intervals = of_below(tail_.affine[0], tail_.activations.empty());
    for (std::size_t l = 0; l < tail_.activations.size(); ++l) {
      layers_.emplace_back();
      for (std::size_t j = 0; j < intervals.size(); ++j)
        layers_[l].push_back({j + tail_.kept[l] < intervals.size() ? tail_.activations[l].of(j)
                                                                   : Activation::identity(),
                              intervals[j]});
      intervals = next_intervals(l + 1);
    }
    return intervals;
  }

 private:
  static constexpr std::array<Line, 2> kLines = {Line::chord, Line::fitted};

  std::vector<Interval> of_below(const Affine& map, bool last) const {
    return bound_sum(mapped(below_, map), last ? options_ : unit_options_);
  }

  // Of what affine map l makes of the layers before it: the least of a bound by each kind of line,
  // and one by the units' ranges alone.
  std::vector<Interval> next_intervals(std::size_t l) const {
    const Affine& map = tail_.affine[l];
    const auto outputs = static_cast<std::size_t>(map.outputs);
    const std::int64_t width = tail_.affine[0].inputs;
    std::vector<Linear> all;  // [output, side, line]
    for (std::size_t i = 0; i < outputs; ++i)
      for (const double side : {1.0, -1.0})
        for (const Line line : kLines) all.push_back(of_sum(l, i, side, line));
    Affine lines{static_cast<std::int64_t>(all.size()), width};
    for (const Linear& each : all) {
      lines.weight.insert(lines.weight.end(), each.v.begin(), each.v.end());
      lines.weight_sizes.insert(lines.weight_sizes.end(), each.sizes.begin(), each.sizes.end());
      lines.bias.push_back(each.constant);
      lines.bias_sizes.push_back(each.lost);
    }
    const std::vector<Interval> bounds = of_below(lines, l == tail_.activations.size());
    std::vector<Interval> ranges;
    for (const Unit& unit : layers_[l - 1]) ranges.push_back(unit.range());
    std::vector<Interval> result = outputs_within(map, ranges, kMargin);
    for (std::size_t i = 0; i < outputs; ++i)
      for (std::size_t line = 0; line < kLines.size(); ++line) {
        const std::size_t up = 2 * i * kLines.size() + line, down = up + kLines.size();
        result[i].high = std::min(result[i].high, bounds[up].high);
        result[i].low = std::max(result[i].low, -bounds[down].high);
      }
    return result;
  }

  // Row i of map l, of a sign, and the layers before it.
  Linear of_sum(std::size_t l, std::size_t i, double side, Line line) const {
    Linear bound = row_of(l, i, side);
    for (std::size_t k = l; k > 0; --k) {
      const std::vector<Unit>& units = layers_[k - 1];
      Vector sigma;
      for (std::size_t j = 0; j < units.size(); ++j) {
        const double w = bound.v[j], slope = w == 0 ? 0 : w * units[j].slope(w, line);
        sigma.push_back(slope);
        bound.lost += bound.sizes[j] * units[j].reach();
        if (w == 0) continue;
        const double most = units[j].most(w, slope), middle = units[j].middle();
        bound.constant += most - slope * middle;
        bound.lost += std::abs(most) + std::abs(slope) * (std::abs(middle) + units[j].half());
      }
      through(tail_.affine[k - 1], sigma, bound);
    }
    return bound;
  }

  Linear row_of(std::size_t l, std::size_t i, double side) const {
    const Affine& map = tail_.affine[l];
    const auto cols = static_cast<std::size_t>(map.inputs);
    const Vector sizes = weight_sizes(map);
    Linear row{side * map.bias[i], bias_sizes(map)[i]};
    for (std::size_t j = i * cols; j < (i + 1) * cols; ++j) {
      row.v.push_back(side * map.weight[j]);
      row.sizes.push_back(sizes[j]);
    }
    return row;
  }

  // sigma . (W h + b), of the values h before.
  static void through(const Affine& map, const Vector& sigma, Linear& bound) {
    const auto cols = static_cast<std::size_t>(map.inputs);
    const Vector sizes = weight_sizes(map), of_bias = bias_sizes(map);
    bound.v.assign(cols, 0);
    bound.sizes.assign(cols, 0);
    for (std::size_t i = 0; i < sigma.size(); ++i) {
      bound.constant += sigma[i] * map.bias[i];
      bound.lost += std::abs(sigma[i]) * of_bias[i];
      for (std::size_t j = 0; j < cols; ++j) {
        bound.v[j] += sigma[i] * map.weight[i * cols + j];
        bound.sizes[j] += std::abs(sigma[i]) * sizes[i * cols + j];
      }
    }
  }

  const Tail& tail_;
  const TailSum& below_;
  NetBoundOptions options_, unit_options_;
  std::vector<std::vector<Unit>> layers_{};
};

}  // namespace

std::vector<Interval> bound_sum(const TailSum& sum, const NetBoundOptions& options) {
  NetBoundOptions each = options;
  each.pieces /= static_cast<std::int64_t>(sum.size());
  std::vector<Interval> all;
  for (const TailTerm& term : sum) {
    const std::vector<Interval> own =
        term.below ? BoundAbove(term, each).outputs() : bound_tail(term.tail, each);
    if (all.empty()) all.resize(own.size());
    // What these sums lose is next to nothing beside the terms' own margins.
    for (std::size_t i = 0; i < own.size(); ++i)
      all[i] = {all[i].low + own[i].low, all[i].high + own[i].high};
  }
  for (const Interval& of : all)
    check(std::isfinite(of.low) && std::isfinite(of.high), "net_bound",
          "got weights so large that a bound is [{}, {}] in double", of.low, of.high);
  return all;
}

}  // namespace keel
