#include "box_product.h"

#include <algorithm>
#include <cmath>

#include "interval_ends.h"
#include "margin.h"

namespace keel {

using Vector = std::vector<double>;

ProductForms::ProductForms(const Forms& n, std::size_t inputs, const Interval& t)
    : n_(n), inputs_(inputs), middle_(middle_of(t)) {
  constexpr double kOthersCancel = 0.3;  // of what units share, a guess
  half_ = std::max(t.high - middle_, middle_ - t.low);
  for (std::size_t j = 0; j < n.units; ++j) {
    centre_.push_back(middle_of({n.low[j], n.high[j]}));
    deviation_.push_back(std::max(n.high[j] - centre_[j], centre_[j] - n.low[j]));
    double own = n.radius[j] + std::abs(n.centre[j] - centre_[j]), shared = 0;
    for (std::size_t k = 0; k < n.variables; ++k)
      (k < inputs ? shared : own) += std::abs(n.of(k)[j]);
    own_.push_back(own);
    flat_.push_back(!(own + kOthersCancel * shared < deviation_[j]));
  }
}

Forms ProductForms::forms(std::size_t variable) const {
  Forms result = empty_forms(n_.units, n_.variables);
  for (std::size_t j = 0; j < n_.units; ++j) {
    for (std::size_t k = 0; k < n_.variables; ++k) result.of(k)[j] = middle_ * n_.of(k)[j];
    result.of(inputs_ - 1)[j] += half_ * centre_[j];
    result.centre[j] = middle_ * n_.centre[j];
    result.radius[j] = middle_ * n_.radius[j] + half_ * (flat_[j] ? deviation_[j] : own_[j]);
    for (std::size_t k = 0; k < inputs_ && !flat_[j]; ++k)
      result.of(variable + k)[j] = half_ * n_.of(k)[j];
  }
  const Vector reach = reaches(result);
  const double low = middle_ - half_, high = middle_ + half_;
  for (std::size_t j = 0; j < n_.units; ++j) {
    const double margin = kMargin * (high * n_.farthest(j) + std::abs(result.centre[j]) + reach[j]);
    result.radius[j] += margin;
    set_ends(result, j, reach[j] + margin,
             {n_.low[j] * (n_.low[j] < 0 ? high : low) - margin,
              n_.high[j] * (n_.high[j] > 0 ? high : low) + margin});
  }
  return result;
}

double ProductForms::back(Vector& weights, double& value, double& size, Vector* lost) const {
  double of_t = 0;
  Vector shared(inputs_);
  for (std::size_t j = 0; j < n_.units; ++j) {
    const double w = weights[j], off = half_ * std::abs(w) * (flat_[j] ? deviation_[j] : own_[j]);
    of_t += w * centre_[j];
    value += off;
    size += std::abs(w) * (middle_ + half_) * (n_.farthest(j) + deviation_[j]);
    for (std::size_t k = 0; k < inputs_ && !flat_[j]; ++k) shared[k] += w * n_.of(k)[j];
    weights[j] = w * middle_;
    if (!lost) continue;
    add_lost(n_, j, 0.5 * off, *lost);
    lost->back() += 0.5 * off;
  }
  for (std::size_t k = 0; k < inputs_; ++k) {
    const double off = half_ * std::abs(shared[k]);
    value += off;
    if (!lost) continue;
    (*lost)[k] += 0.5 * off;
    lost->back() += 0.5 * off;
  }
  value -= of_t * middle_;
  return of_t;
}

}  // namespace keel
