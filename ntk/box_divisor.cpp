#include "box_divisor.h"

#include <algorithm>
#include <cmath>

#include "box_square.h"
#include "dot.h"
#include "interval_ends.h"
#include "margin.h"

namespace keel {

using Vector = std::vector<double>;

DivisorLines::DivisorLines(const BoxNorm& norm, const Forms& given, std::size_t inputs,
                           const Interval& last)
    : norm_(norm), given_(given), inputs_(inputs), slope_(given.units) {
  constexpr double kLeast = 1e-125;  // of r: below, squares leave double
  const Interval t =
      norm.eps_of_last ? Interval{std::max(last.low, 0.0), last.high} : Interval{1, 1};
  const double t0 = middle_of(t), off_t = std::max(t.high - t0, t0 - t.low);
  const BoxSquare square(given, norm.units, {norm.eps * t.low * t.low, norm.eps * t.high * t.high});
  const double least = square.whole.low >= kLeast * kLeast ? square.whole.low : 0,
               most = std::max(square.whole.high, kLeast * kLeast);
  divisor_ = {(1 - kMargin) * std::sqrt(least), (1 + kMargin) * std::sqrt(most)};
  const auto n = static_cast<double>(norm.units);
  double at_centre = norm.eps * t0 * t0;
  for (const double c : square.centre) at_centre += c * c / n;
  const double r0 = std::sqrt(at_centre);
  sag_ = (1 + kMargin) * (square.off + norm.eps * off_t * off_t) / (2 * r0);
  if (!(r0 > kLeast && sag_ < divisor_.high - divisor_.low)) {
    shift_ = divisor_.low;
    sag_ = divisor_.high - divisor_.low;
    summed_ = divisor_.high;
    return;
  }
  for (std::size_t j = 0; j < norm.units; ++j) slope_[j] = square.centre[j] / (n * r0);
  (norm.eps_of_last ? slope_[norm.units] : shift_) = norm.eps * t0 / r0;
  summed_ = shift_ + divisor_.high;
  for (std::size_t j = 0; j < given.units; ++j) summed_ += std::abs(slope_[j]) * given.farthest(j);
}

Forms DivisorLines::forms(std::size_t variable) const {
  const std::size_t n = norm_.units;
  Forms result = empty_forms(n + 1, given_.variables);
  for (std::size_t k = 0; k < given_.variables; ++k)
    for (std::size_t j = 0; j < given_.units; ++j) result.of(k)[n] += slope_[j] * given_.of(k)[j];
  result.of(variable)[n] = 0.5 * sag_;
  double centre = shift_ + 0.5 * sag_, radius = kMargin * summed_;
  for (std::size_t j = 0; j < given_.units; ++j) {
    centre += slope_[j] * given_.centre[j];
    radius += std::abs(slope_[j]) * given_.radius[j];
  }
  result.centre[n] = centre;
  result.radius[n] = radius;
  for (std::size_t j = 0; j < n; ++j) {
    const double gain = norm_.gain[j], bias = norm_.bias[j];
    for (std::size_t k = 0; k < given_.variables; ++k)
      result.of(k)[j] = gain * given_.of(k)[j] + bias * result.of(k)[n];
    result.centre[j] = gain * given_.centre[j] + bias * centre;
    result.radius[j] = std::abs(gain) * given_.radius[j] + std::abs(bias) * radius;
  }
  const Vector reach = reaches(result);
  set_ends(result, n, reach[n], divisor_);
  const Interval r{std::max(result.low[n], 0.0), result.high[n]};
  std::vector<Interval> ratios;
  for (std::size_t j = 0; j < n; ++j) {
    const double gain = norm_.gain[j], bias = norm_.bias[j], most = std::abs(gain) * norm_.most[j];
    const double margin = kMargin * (std::abs(gain) * given_.farthest(j) +
                                     std::abs(bias) * (summed_ + r.high) + reach[j]);
    result.radius[j] += margin;
    const double low = gain * given_.low[j], high = gain * given_.high[j];
    set_ends(result, j, reach[j] + margin,
             {std::min(low, high) + bias * (bias > 0 ? r.low : r.high) - margin,
              std::max(low, high) + bias * (bias > 0 ? r.high : r.low) + margin});
    const double off = most + kMargin * (most + std::abs(bias));
    ratios.push_back({bias - off, bias + off});
  }
  set_ratios(result, std::move(ratios));
  return result;
}

// How far weights . (what is given) may go, by its forms.
Interval DivisorLines::range_of(const Vector& weights) const {
  double middle = 0, reach = 0;
  for (std::size_t j = 0; j < given_.units; ++j) {
    middle += weights[j] * given_.centre[j];
    reach += std::abs(weights[j]) * given_.radius[j];
  }
  for (std::size_t k = 0; k < given_.variables; ++k)
    reach += std::abs(dot(weights.data(), given_.of(k), given_.units));
  return {middle - reach, middle + reach};
}

// sum of w_j c_j + of_divisor r, by the forms of c, or by |w| |c| and |c| <= sqrt(n) r.
void DivisorLines::back(Vector& weights, double& value, double& size, Vector* lost) const {
  const std::size_t n = norm_.units;
  double of_divisor = weights[n], square = 0;
  for (std::size_t j = 0; j < n; ++j) {
    of_divisor += weights[j] * norm_.bias[j];
    size += std::abs(weights[j]) * (std::abs(norm_.gain[j]) * given_.farthest(j) +
                                    std::abs(norm_.bias[j]) * divisor_.high);
    weights[j] *= norm_.gain[j];
    square += weights[j] * weights[j];
  }
  weights.resize(given_.units);
  if (norm_.eps_of_last) weights[n] = 0;
  Vector by_forms = weights;
  for (std::size_t j = 0; j < given_.units; ++j) by_forms[j] += of_divisor * slope_[j];
  const double most_of_c = std::sqrt(square * static_cast<double>(n));
  const double of_ball = of_divisor + most_of_c;
  const Interval linear = range_of(by_forms);
  const double most_linear = linear.high + of_divisor * shift_ + std::max(of_divisor, 0.0) * sag_;
  const double most_ball = of_ball * (of_ball > 0 ? divisor_.high : divisor_.low);
  double off = std::max(of_divisor, 0.0) * sag_;
  if (most_ball < most_linear) {
    size += most_of_c * divisor_.high;
    off = most_ball - middle_of(linear) - of_divisor * shift_;
    of_divisor = of_ball;
    if (of_divisor > 0) {
      value += most_ball;
      size += most_ball;
      of_divisor = 0;
    }
    for (std::size_t j = 0; j < given_.units; ++j) weights[j] = of_divisor * slope_[j];
  } else {
    weights = std::move(by_forms);
  }
  value += of_divisor * shift_ + std::max(of_divisor, 0.0) * sag_;
  size += std::abs(of_divisor) * (summed_ + sag_);
  if (lost && off > 0) add_lost_of_square(off, *lost);
}

double DivisorLines::most_ratio(const Vector& weights, double size, Vector& lost) const {
  double of_divisor = weights[norm_.units], square = 0;
  for (std::size_t j = 0; j < norm_.units; ++j) {
    of_divisor += weights[j] * norm_.bias[j];
    size += std::abs(weights[j] * norm_.bias[j]) * divisor_.high;
    square += weights[j] * norm_.gain[j] * weights[j] * norm_.gain[j];
  }
  const double off = std::sqrt(square * static_cast<double>(norm_.units));
  add_lost_of_square(off * divisor_.high, lost);
  return of_divisor + off + kMargin * (size / divisor_.high + off + std::abs(of_divisor));
}

// By how much of |c - c0|^2 is of each input's side.
void DivisorLines::add_lost_of_square(double off, Vector& lost) const {
  Vector squares(inputs_);
  double all = 0;
  for (std::size_t k = 0; k < inputs_; ++k) {
    squares[k] = dot(given_.of(k), given_.of(k), norm_.units);
    if (norm_.eps_of_last) {
      const double of_t = given_.of(k)[norm_.units];
      squares[k] += static_cast<double>(norm_.units) * norm_.eps * of_t * of_t;
    }
    all += squares[k];
  }
  for (std::size_t k = 0; k < inputs_ && all > 0; ++k) lost[k] += off * squares[k] / all;
}

}  // namespace keel
