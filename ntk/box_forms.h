// What a layer's values are over a box of inputs: linear forms of it, and how far off they may be.
#pragma once

#include <cstddef>
#include <vector>

#include "interval.h"

namespace keel {

/// Numbers between `low` and `high`, each.
struct Box {
  std::vector<double> low{}, high{};
  double middle(std::size_t k) const { return low[k] + 0.5 * (high[k] - low[k]); }
};

/// Value j is centre[j] + sum over k of weight[k, j] e_k + r with |e_k| <= 1 and |r| <= radius[j],
/// and between low[j] and high[j]. Of a box's own inputs x_k = middle_k + half_k e_k; those e that
/// follow are of norms. Whatever x of the box: some e and r give all values of a layer at once.
struct Forms {
  std::size_t units = 0, variables = 0;
  std::vector<double> weight{};  ///< [variables, units]
  std::vector<double> centre{}, radius{}, low{}, high{};
  std::vector<Interval> ratios{};  ///< of each value to the last one, which is not below 0; or none

  double* of(std::size_t variable) { return &weight[variable * units]; }
  const double* of(std::size_t variable) const { return &weight[variable * units]; }
  double farthest(std::size_t j) const;  ///< at least |value j|
};

/// Of the box's own inputs.
Forms forms_of(const Box& box, std::size_t variables);

Forms empty_forms(std::size_t units, std::size_t variables);

/// How far each value may be from its centre, by its form.
std::vector<double> reaches(const Forms& forms);

/// Puts low[j] and high[j] where the form, which goes so far, and `known` both have them.
void set_ends(Forms& forms, std::size_t j, double reach, const Interval& known);

/// Puts ratios where `known` and the forms, and ends where ends and ratios have them. Of the last
/// value, which is 1, `known` need not tell.
void set_ratios(Forms& forms, std::vector<Interval> known);

/// Adds to lost [inputs] what each input's side of the box has of `by`, which value j's form costs.
void add_lost(const Forms& forms, std::size_t j, double by, std::vector<double>& lost);

}  // namespace keel
