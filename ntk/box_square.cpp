#include "box_square.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "interval_ends.h"
#include "margin.h"

namespace keel {
namespace {

// Of sums of squares.
Interval widened_squares(const Interval& interval) {
  return {interval.low * (1 - kMargin), interval.high * (1 + kMargin)};
}

}  // namespace

// By each unit's ends, and by the forms, of which c - c0 is known to be one of few variables.
BoxSquare::BoxSquare(const Forms& c, std::size_t units, const Interval& eps) {
  const auto n = static_cast<double>(units);
  Interval by_ends = eps, by_forms = eps;
  double ends_square = 0, forms_square = 0;  // of c - c0, at most
  for (std::size_t j = 0; j < units; ++j) {
    const double low = c.low[j], high = c.high[j], most = c.farthest(j);
    const double least = least_of({low, high});
    by_ends.low += least * least / n;
    by_ends.high += most * most / n;
    by_forms.low += c.centre[j] * c.centre[j] / n;
    const double half = 0.5 * (high - low), radius = c.radius[j];
    ends_square += half * half / n;
    forms_square += (2 * std::max(high - c.centre[j], c.centre[j] - low) + radius) * radius / n;
  }
  by_forms.high += by_forms.low - eps.low;
  double linear = 0, cross = 0;
  for (std::size_t k = 0; k < c.variables; ++k) {
    const double* of_k = c.of(k);
    linear += 2 * std::abs(dot(of_k, c.centre.data(), units)) / n;
    for (std::size_t m = 0; m <= k; ++m)
      forms_square += (m == k ? 1 : 2) * std::abs(dot(of_k, c.of(m), units)) / n;
  }
  for (std::size_t j = 0; j < units; ++j) cross += 2 * std::abs(c.centre[j]) * c.radius[j] / n;
  const double rounded = kMargin * (by_forms.high + linear + forms_square + cross);
  by_forms.low -= linear + cross + rounded;
  by_forms.high += linear + cross + forms_square + rounded;
  const bool forms_tell = forms_square < ends_square;
  for (std::size_t j = 0; j < units; ++j) {
    const double low = c.low[j], high = c.high[j];
    centre.push_back(forms_tell ? c.centre[j] : low + 0.5 * (high - low));
    deviation.push_back(std::max(high - centre[j], centre[j] - low));
  }
  off = forms_tell ? forms_square : ends_square;
  const double at_centre = dot(centre.data(), centre.data(), units) / n;
  whole = common(widened_squares(by_ends), by_forms);
  around = widened_squares({at_centre + eps.low, at_centre + eps.high + off});
}

}  // namespace keel
