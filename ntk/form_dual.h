// FormDual: a bound of what stands behind a transformer's relus, for any multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "../core/tensor.h"
#include "adam.h"
#include "direction.h"
#include "form_maximum.h"
#include "form_rows.h"

namespace keel {

/// All multipliers are made of free numbers x: tau of a parabola as e^x; the slope of a line above
/// a relu with a negative factor, and eta, what of theta z^2/4 the parabola below e takes, as
/// shares 1/(1 + e^-x); theta as e^x times what makes P positive definite, and 1 + e^slack times
/// that (docs/transformer.md). Where it begins, tau is what ParabolaBound takes.
class FormDual {
 public:
  /// All must outlive this.
  FormDual(const FormRows& rows, const Direction& d, const Direction& of_units);

  bool any_parabola() const { return !above_.empty(); }
  bool any_kink() const { return !theta_.empty(); }

  /// The bound at x, and the sizes of all that makes it; infinity where a number leaves double.
  Most value();
  /// A step down from the last value (Adam's way).
  void step(double rate);

  /// x, slack last; and the slope of the last value in it.
  std::vector<double>& multipliers() { return x_; }
  const std::vector<double>& slope() const { return gradient_; }

 private:
  bool last_block(double& value, std::vector<double>& of_state);
  bool without_kinks(double& value, const std::vector<double>& of_state,
                     std::vector<double>& of_square, std::vector<double>& of_z);
  // form_moments.cpp: where the last value is taken, as means and second moments, and its slope.
  void take_moments();
  double slopes();

  double tau(std::size_t i) const { return std::exp(x_[i]); }
  double slack() const { return std::exp(std::max(x_.back(), -4.0)); }
  static double share(double x) { return 1 / (1 + std::exp(-x)); }
  double line(std::size_t i) const { return share(x_[above_.size() + i]); }
  std::size_t kinks() const { return theta_.size(); }
  std::size_t units() const { return rows_.z_middle.size(); }

  const FormRows& rows_;
  const Direction &d_, &of_units_;
  std::vector<std::size_t> above_, below_;  // relus of the last block with a parabola, with a line
  Tensor hidden_;                           // the rows of the former
  Most fixed_;                              // and what the multipliers do not change
  std::vector<double> always_;              // slope of the relus that are always on
  std::size_t thetas_, etas_;               // where they begin in x
  std::vector<double> x_, gradient_;
  Adam adam_{0};
  FormMaximum maximum_;

  // At x: theta and eta, a kink each, and r; L and its inverse, transposed; 1 / (1 - K), and the
  // eigenvector that theta is raised for; L' times rows, kinks, and w / 2.
  std::vector<double> theta_, eta_, pulled_;
  Tensor root_, inverse_root_, resolvent_;
  std::vector<double> top_;
  Tensor of_rows_, of_kinks_;
  std::vector<double> half_;
  // Means and second moments: of a = L' times the state less that at the middle; of each z, a kink.
  std::vector<double> state_mean_, z_mean_, z_square_;
  Tensor state_square_;
};

}  // namespace keel
