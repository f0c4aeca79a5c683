#include "box_forms.h"

#include <algorithm>
#include <cmath>

#include "interval_ends.h"
#include "margin.h"

namespace keel {

double Forms::farthest(std::size_t j) const {
  return std::max(std::abs(low[j]), std::abs(high[j]));
}

Forms empty_forms(std::size_t units, std::size_t variables) {
  const std::vector<double> zeros(units);
  return {units, variables, std::vector<double>(variables * units), zeros, zeros, zeros, zeros};
}

Forms forms_of(const Box& box, std::size_t variables) {
  Forms forms = empty_forms(box.low.size(), variables);
  forms.low = box.low;
  forms.high = box.high;
  for (std::size_t k = 0; k < forms.units; ++k) {
    const double middle = box.middle(k);
    forms.centre[k] = middle;
    forms.of(k)[k] = std::max(box.high[k] - middle, middle - box.low[k]);
  }
  return forms;
}

std::vector<double> reaches(const Forms& forms) {
  std::vector<double> result = forms.radius;
  for (std::size_t k = 0; k < forms.variables; ++k) {
    const double* weight = forms.of(k);
    for (std::size_t j = 0; j < forms.units; ++j) result[j] += std::abs(weight[j]);
  }
  return result;
}

void set_ends(Forms& forms, std::size_t j, double reach, const Interval& known) {
  forms.low[j] = std::max(known.low, forms.centre[j] - reach);
  forms.high[j] = std::min(known.high, forms.centre[j] + reach);
  if (forms.low[j] <= forms.high[j]) return;
  forms.low[j] = known.low;  // they differ by rounding, or are no numbers: both hold
  forms.high[j] = known.high;
}

// z is between u0 r and what z - u0 r, which has a form, may be.
void set_ratios(Forms& forms, std::vector<Interval> known) {
  forms.ratios = std::move(known);
  const std::size_t n = forms.units - 1;
  if (forms.ratios.size() == n) forms.ratios.push_back({1, 1});
  const Interval r{std::max(forms.low[n], 0.0), forms.high[n]};
  std::vector<double> middle(n), off(n);
  for (std::size_t j = 0; j < n; ++j) {
    middle[j] = forms.centre[j] / forms.centre[n];
    off[j] = forms.radius[j] + std::abs(middle[j]) * forms.radius[n];
  }
  for (std::size_t k = 0; k < forms.variables; ++k) {
    const double *of = forms.of(k), of_last = of[n];
    for (std::size_t j = 0; j < n; ++j) off[j] += std::abs(of[j] - middle[j] * of_last);
  }
  for (std::size_t j = 0; j < n; ++j) {
    Interval& ratio = forms.ratios[j];
    const double margin = kMargin * (forms.farthest(j) + std::abs(middle[j]) * r.high);
    const double by = (off[j] + margin) / r.low;
    ratio = common(ratio, {middle[j] - by, middle[j] + by});
    const Interval z{std::max(forms.low[j], ratio.low * (ratio.low < 0 ? r.high : r.low)),
                     std::min(forms.high[j], ratio.high * (ratio.high > 0 ? r.high : r.low))};
    if (!(z.low <= z.high)) continue;
    const double rounded = kMargin * std::max(std::abs(z.low), std::abs(z.high));
    forms.low[j] = std::max(forms.low[j], z.low - rounded);
    forms.high[j] = std::min(forms.high[j], z.high + rounded);
  }
}

void add_lost(const Forms& forms, std::size_t j, double by, std::vector<double>& lost) {
  double all = forms.radius[j];
  for (std::size_t k = 0; k < forms.variables; ++k) all += std::abs(forms.of(k)[j]);
  for (std::size_t k = 0; k < lost.size() && all > 0; ++k)
    lost[k] += by * std::abs(forms.of(k)[j]) / all;
}

}  // namespace keel
