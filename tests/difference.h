// How far two results are apart, where a NaN is further than any number.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "../core/max_or_nan.h"
#include "../core/tensor.h"

namespace keel::test {

/// Largest |a - b| of any element, of tensors of as many elements on any devices.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = max_or_nan(most, std::abs(x[i] - y[i]));
  return most;
}

/// The same over the largest |b|.
inline double relative_difference(const Tensor& a, const Tensor& b) {
  double largest = 1e-300;
  for (double value : b.to_vector<double>()) largest = std::max(largest, std::abs(value));
  return largest_difference(a, b) / largest;
}

}  // namespace keel::test
