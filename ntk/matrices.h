// Matrices of double, and vectors beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../core/tensor.h"
#include "../kernels/gemm.h"
#include "dot.h"

namespace keel::matrix {

inline std::int64_t count(std::size_t n) { return static_cast<std::int64_t>(n); }

inline Tensor zeros(std::size_t rows, std::size_t columns) {
  return Tensor::zeros({count(rows), count(columns)}, DType::f64);
}

/// a b, or a b'.
inline Tensor product(const Tensor& a, const Tensor& b, Transpose transpose_b = Transpose::no) {
  const std::int64_t columns = b.size(transpose_b == Transpose::no ? 1 : 0);
  const Tensor c = Tensor::empty({a.size(0), columns}, DType::f64);
  gemm(Transpose::no, transpose_b, 1, a, b, 0, c);
  return c;
}

/// a' b.
inline Tensor inner_product(const Tensor& a, const Tensor& b) {
  const Tensor c = Tensor::empty({a.size(1), b.size(1)}, DType::f64);
  gemm(Transpose::yes, Transpose::no, 1, a, b, 0, c);
  return c;
}

/// Rows of `a`, each times a factor.
inline Tensor scaled_rows(const Tensor& a, const std::vector<double>& factors) {
  const Tensor result = a.clone();
  const auto columns = static_cast<std::size_t>(a.size(1));
  for (std::size_t i = 0; i < factors.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j) result.data<double>()[i * columns + j] *= factors[i];
  return result;
}

inline std::vector<double> times(const Tensor& matrix, const double* x) {
  const auto rows = static_cast<std::size_t>(matrix.size(0)),
             columns = static_cast<std::size_t>(matrix.size(1));
  std::vector<double> result(rows);
  for (std::size_t i = 0; i < rows; ++i)
    result[i] = dot(matrix.data<double>() + i * columns, x, columns);
  return result;
}

inline void add(std::vector<double>& to, const std::vector<double>& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

}  // namespace keel::matrix
