// The last term of a dual: a linear function and a quadratic of u, at their most over what a norm
// gives (docs/certificate.md, "The dual").
#pragma once

#include "unit_rows.h"

namespace keel {

/// Of g.u + sum kappa_i (row_i . u)^2 + u.(added u), inner <= |u| <= 1. kappa is one number for all
/// units, or each has its own; `added` [rank, rank], or empty, is there only in the latter case.
class InputMaximum {
 public:
  InputMaximum(const UnitRows& rows, const NormSet& set, std::size_t units, bool one_kappa);

  /// A bound of the maximum; g becomes the u of it. Infinite, and g stays, where the quadratic has
  /// left double.
  double shell(const double* kappa, std::vector<double>& g, const std::vector<double>& added) const;

  /// g or, of the cone, a shorter p = g + y with y.u >= 0 there: the one with the smaller maximum,
  /// which the shorter has where the quadratic is a multiple of |u|^2. `alpha`: the cone's weights,
  /// to go on from, or none.
  std::vector<double> within_cone(const double* kappa, const std::vector<double>& g,
                                  const std::vector<double>& added,
                                  std::vector<double>* alpha) const;

 private:
  const UnitRows& rows_;
  const NormSet& set_;
  std::size_t units_;
  bool one_kappa_;
  std::vector<double> values_, vectors_;  // of sum row_i row_i^T, where there is one kappa
};

}  // namespace keel
