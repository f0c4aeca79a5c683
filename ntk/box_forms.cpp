#include "box_forms.h"

#include <algorithm>
#include <cmath>

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

void add_lost(const Forms& forms, std::size_t j, double by, std::vector<double>& lost) {
  double all = forms.radius[j];
  for (std::size_t k = 0; k < forms.variables; ++k) all += std::abs(forms.of(k)[j]);
  for (std::size_t k = 0; k < lost.size() && all > 0; ++k)
    lost[k] += by * std::abs(forms.of(k)[j]) / all;
}

}  // namespace keel
