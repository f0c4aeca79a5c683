#include "box_norm.h"

#include <algorithm>
#include <cmath>

#include "box_square.h"
#include "interval_ends.h"
#include "margin.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

// Widened by what rounding may have lost.
Interval widened(const Interval& interval) {
  const double margin = kMargin * most_of(interval);
  return {interval.low - margin, interval.high + margin};
}

}  // namespace

NormLines::NormLines(const BoxNorm& norm, const Forms& c, std::size_t inputs, const Interval& last)
    : norm_(norm), c_(c), inputs_(inputs) {
  const double least = last.low > 0 ? last.low : 0, most = std::max(std::abs(last.low), last.high);
  BoxSquare square(c, c.units,
                   norm.eps_of_last ? Interval{norm.eps * least * least, norm.eps * most * most}
                                    : Interval{norm.eps, norm.eps});
  set_root(square.whole, square.around);
  centre_ = std::move(square.centre);
  deviation_ = std::move(square.deviation);
  for (std::size_t j = 0; j < c.units; ++j) set_unit(j);
}

// s = 1 / sqrt(q) of q in `square`; `around`: q less what is linear in c - c0.
void NormLines::set_root(const Interval& square, const Interval& around) {
  constexpr double kLeast = 1e-250;  // of q: below, squares leave double
  open_ = !(square.low >= kLeast);
  if (open_) return;
  const double least = square.low, most = std::max(square.high, least);
  low_root_ = (1 - kMargin) / std::sqrt(most);
  high_root_ = (1 + kMargin) / std::sqrt(least);
  root_ = middle_of({low_root_, high_root_});
  root_off_ = std::max(high_root_ - root_, root_ - low_root_);
  root_radius_ = root_off_;
  const double slope = (1 / std::sqrt(most) - 1 / std::sqrt(least)) / (most - least);
  if (!(slope < 0) || !std::isfinite(slope)) return;
  // The chord is above, its parallel at q = (-2 slope)^(-2/3) below.
  const auto beside = [slope](double q) { return 1 / std::sqrt(q) - slope * q; };
  const double touches = std::clamp(std::pow(-2 * slope, -2.0 / 3), least, most);
  const double above = std::max(beside(least), beside(most)), below = beside(touches);
  const Interval shift{below + slope * around.high - root_, above + slope * around.low - root_};
  const double radius = half_of(shift) + kMargin * (above + std::abs(slope) * around.high + root_);
  if (!(radius < root_off_)) return;
  slope_ = slope;
  shift_ = middle_of(shift);
  root_radius_ = radius;
}

void NormLines::set_unit(std::size_t j) {
  constexpr double kOthersCancel = 0.3;  // of the last product's sum over units, a guess
  const double low = c_.low[j], high = c_.high[j], most = norm_.most[j] * (1 + kMargin);
  Interval range{-most, most};  // where all c may be 0
  if (!open_)
    range = common(widened({low * (low < 0 ? high_root_ : low_root_),
                            high * (high > 0 ? high_root_ : low_root_)}),
                   range);
  double own = c_.radius[j] + std::abs(c_.centre[j] - centre_[j]);
  for (std::size_t k = inputs_; k < c_.variables; ++k) own += std::abs(c_.of(k)[j]);
  range_.push_back(range);
  own_.push_back(own);
  flat_.push_back(open_ || !(kOthersCancel * deviation_[j] * root_off_ < half_of(range)));
}

Forms NormLines::forms(std::size_t variable) const {
  const std::size_t n = c_.units;
  Forms result = empty_forms(n, c_.variables);
  // s - s0 as a form.
  Vector of_root(c_.variables);
  double root_centre = shift_, root_radius = root_radius_;
  for (std::size_t j = 0; j < n; ++j) {
    const double share = 2 * slope_ * centre_[j] / static_cast<double>(n);
    for (std::size_t k = 0; k < c_.variables; ++k) of_root[k] += share * c_.of(k)[j];
    root_centre += share * (c_.centre[j] - centre_[j]);
    root_radius += std::abs(share) * c_.radius[j];
  }
  for (std::size_t j = 0; j < n; ++j) {
    const double gain = norm_.gain[j];
    const Interval& range = range_[j];
    if (flat_[j]) {
      result.centre[j] = middle_of(range);
      result.radius[j] = half_of(range);
    } else {
      for (std::size_t k = 0; k < c_.variables; ++k)
        result.of(k)[j] = root_ * c_.of(k)[j] + centre_[j] * of_root[k];
      result.of(variable)[j] = centre_[j] * root_radius;
      for (std::size_t k = 0; k < inputs_; ++k)
        result.of(variable + 1 + k)[j] = root_off_ * c_.of(k)[j];
      result.centre[j] = root_ * c_.centre[j] + centre_[j] * root_centre;
      result.radius[j] = root_ * c_.radius[j] + own_[j] * root_off_;
    }
    for (std::size_t k = 0; k < c_.variables; ++k) result.of(k)[j] *= gain;
    result.centre[j] = gain * result.centre[j] + norm_.bias[j];
    result.radius[j] *= std::abs(gain);
  }
  const Vector before = reaches(result);
  for (std::size_t j = 0; j < n; ++j) {
    const double gain = norm_.gain[j], low = gain * range_[j].low, high = gain * range_[j].high;
    const double of_root =
        flat_[j] ? 0 : std::abs(gain * centre_[j]) * (root_ + std::abs(root_centre));
    const double margin =
        kMargin * (std::abs(result.centre[j]) + before[j] + std::abs(norm_.bias[j]) + of_root);
    result.radius[j] += margin;
    set_ends(result, j, before[j] + margin,
             {std::min(low, high) + norm_.bias[j] - margin,
              std::max(low, high) + norm_.bias[j] + margin});
  }
  return result;
}

void NormLines::back(Vector& weights, double& value, double& size, Vector* lost) const {
  const auto n = static_cast<double>(c_.units);
  double of_root = 0, squares = 0;
  Vector of_inputs(inputs_);
  for (std::size_t j = 0; j < c_.units; ++j) {
    value += weights[j] * norm_.bias[j];
    size += std::abs(weights[j] * norm_.bias[j]);
    const double w = weights[j] * norm_.gain[j], off = std::abs(w);
    if (flat_[j]) {
      value += w * middle_of(range_[j]) + off * half_of(range_[j]);
      size += off * most_of(range_[j]);
      if (lost) add_lost(c_, j, off * half_of(range_[j]), *lost);
      weights[j] = 0;
      continue;
    }
    value += off * own_[j] * root_off_;
    size += off * (c_.farthest(j) + deviation_[j]) * high_root_;
    if (lost) add_lost(c_, j, off * own_[j] * root_off_, *lost);
    of_root += w * centre_[j];
    squares += deviation_[j] * deviation_[j];
    for (std::size_t k = 0; k < inputs_; ++k) of_inputs[k] += w * c_.of(k)[j];
    weights[j] = w * root_;
  }
  for (std::size_t k = 0; k < inputs_; ++k) {
    value += std::abs(of_inputs[k]) * root_off_;
    if (lost) (*lost)[k] += std::abs(of_inputs[k]) * root_off_;
  }
  value += of_root * shift_ + std::abs(of_root) * root_radius_;
  size += std::abs(of_root) * (high_root_ + root_);
  for (std::size_t j = 0; j < c_.units; ++j) {
    const double share = 2 * slope_ * centre_[j] / n * of_root;
    weights[j] += share;
    value -= share * centre_[j];
    size += std::abs(share) * (std::abs(centre_[j]) + c_.farthest(j));
    if (lost && squares > 0 && !flat_[j])
      add_lost(c_, j, std::abs(of_root) * root_radius_ * deviation_[j] * deviation_[j] / squares,
               *lost);
  }
}

}  // namespace keel
