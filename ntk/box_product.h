// t times values that have forms, t being a net's last input.
#pragma once

#include "box_forms.h"

namespace keel {

/// With t0 and n0 in the middle of what they may be,
///   t n_j = t0 n_j + n0_j (t - t0) + (n_j - n0_j)(t - t0),
/// and the last product is one of the box's own e with a number that all units share, or where that
/// is loose within a radius.
class ProductForms {
 public:
  ProductForms(const Forms& n, std::size_t inputs, const Interval& t);

  /// Its `inputs` variables begin at `variable`.
  Forms forms(std::size_t variable) const;

  /// Of weights of the product: makes them such of n, and returns what is such of t. Adds to value,
  /// size and lost as NormLines::back().
  double back(std::vector<double>& weights, double& value, double& size,
              std::vector<double>* lost) const;

 private:
  const Forms& n_;
  std::size_t inputs_;
  double middle_ = 0, half_ = 0;  // of t
  std::vector<double> centre_{}, deviation_{}, own_{};
  std::vector<bool> flat_{};  // the last product is within a radius, and no more is known
};

}  // namespace keel
