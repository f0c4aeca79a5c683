// Inputs, nets and distances for the tests of Jacobian.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../../core/max_or_nan.h"
#include "../../core/random.h"
#include "../../nn/net.h"
#include "../difference.h"

namespace jacobian_helpers {

using namespace keel;  // NOLINT: a header of tests
using std::int64_t;

constexpr const char* kDeep = "dense(9) layernorm relu dense(7) gelu layernorm(affine=0) dense(3)";

inline Tensor inputs(int64_t n, int64_t width, std::uint64_t seed, DType dtype = DType::f64) {
  return normal({n, width}, {seed, 0}, 1, dtype);
}

/// Largest |got - wanted(i, j)| over sqrt of the larger diagonals, or over the largest entry.
template <class F>
double error_of(const Tensor& got, F wanted) {
  const auto values = got.to_vector<double>();
  const int64_t n = got.size(-2), m = got.size(-1);
  double worst = 0, largest = 1e-300;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      const double expected = wanted(i, j);
      largest = std::max(largest, std::abs(expected));
      worst = max_or_nan(worst, std::abs(values[static_cast<std::size_t>(i * m + j)] - expected));
    }
  return worst / largest;
}

inline double dot(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

inline NetOptions options(Parameterisation parameterisation, int64_t members = 1,
                          DType dtype = DType::f64) {
  return {.parameterisation = parameterisation, .members = members, .seed = 3, .dtype = dtype};
}

}  // namespace jacobian_helpers
