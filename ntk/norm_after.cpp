#include "norm_after.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
#include "../kernels/one_blas_thread.h"
#include "dot.h"
#include "interval.h"
#include "length.h"
#include "norm_span.h"
#include "shell_maximum.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// W's columns and then b, less their means if `centred`.
std::vector<Vector> columns_of(const Affine& map, bool centred) {
  const auto cols = static_cast<std::size_t>(map.inputs);
  std::vector<Vector> columns(cols + 1);
  for (std::size_t i = 0; i < map.bias.size(); ++i) {
    for (std::size_t j = 0; j < cols; ++j) columns[j].push_back(map.weight[i * cols + j]);
    columns[cols].push_back(map.bias[i]);
  }
  if (centred) std::ranges::for_each(columns, centre);
  return columns;
}

// How far apart from their mean, or from 0, the units of W u + b are, inner <= |u| <= 1. `margin`:
// of n times their square.
Interval deviations(const std::vector<Vector>& columns, double inner, double margin) {
  if (!std::isfinite(margin)) return {0, kInfinity};  // too large
  const OneBlasThread one;
  const std::size_t rows = columns[0].size(), cols = columns.size() - 1;
  // |W u + b|^2 = u' W'W u + 2 b'W u + b'b
  const auto product = [&](std::size_t a, std::size_t b) {
    return dot(columns[a].data(), columns[b].data(), rows);
  };
  Vector square, linear;
  for (std::size_t i = 0; i < cols; ++i)
    for (std::size_t j = 0; j < cols; ++j) square.push_back(product(i, j));
  const auto n = static_cast<std::int64_t>(cols);
  const Tensor vectors = Tensor::from(square, {n, n});
  Vector values = symmetric_eigen(vectors).to_vector<double>();
  const Vector rows_of_vectors = vectors.to_vector<double>();
  for (std::size_t i = 0; i < cols; ++i) {
    linear.push_back(0);
    for (std::size_t j = 0; j < cols; ++j)
      linear[i] += 2 * product(j, cols) * rows_of_vectors[i * cols + j];
  }
  const double most = shell_maximum(values, linear, inner).value;
  for (Vector* each : {&values, &linear}) {
    std::ranges::reverse(*each);
    for (double& value : *each) value = -value;
  }
  const double least = -shell_maximum(values, linear, inner).value, rest = product(cols, cols);
  const auto count = static_cast<double>(rows);
  return {std::sqrt(std::max(least + rest - margin, 0.0) / count),
          std::sqrt((most + rest + margin) / count)};
}

// A norm's output, of deviations in an interval: its length, and the bias's part in it, which has
// the weight 1 in what is divided.
void set_lengths(NormSpan& of, const Interval& deviations, double eps) {
  NormSet& set = of.set;
  set.inner = std::max(set.inner, part_of(deviations.low, eps));
  const auto divisor = [&](double deviation) { return std::sqrt(deviation * deviation + eps); };
  if (!set.half || divisor(deviations.low) == 0) return;
  set.last = {(1 - kRounding) * of.of_bias / divisor(deviations.high),
              std::min(1.0, (1 + kRounding) * of.of_bias / divisor(deviations.low))};
}

// Column `column` along vector k of the set's basis.
double along(const NormSet& set, const std::vector<Vector>& columns, std::size_t k,
             std::size_t column) {
  const std::size_t rows = columns[0].size();
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i)
    sum += set.basis[i * static_cast<std::size_t>(set.rank) + k] * columns[column][i];
  return sum;
}

// B'z is (R u + r, beta), with R of W's columns, and |u| <= 1: the norm's output (v, w), parallel
// to it, has (beta v - r w)' (R R')^-1 (beta v - r w) <= w^2. The ellipsoid is widened by what
// rounding may have put into R, r and beta, at most `margin`.
void set_quadric(NormSet& set, const std::vector<Vector>& columns, double margin) {
  // kClear: what of R u is off as beta is stays well within what widens R R'.
  constexpr double kClear = 1e4, kWidened = 1e-3;
  const std::size_t cols = columns.size() - 1, rank = static_cast<std::size_t>(set.rank);
  if (!set.half || rank < 2) return;
  const OneBlasThread one;
  const std::size_t n = rank - 1;
  Vector r(n);
  for (std::size_t k = 0; k < n; ++k) r[k] = along(set, columns, k, cols);
  const double beta = along(set, columns, n, cols);
  if (!(beta > kClear * margin)) return;
  Vector of_columns(n * cols), square(n * n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = 0; j < cols; ++j) of_columns[k * cols + j] = along(set, columns, k, j);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b)
      square[a * n + b] = dot(&of_columns[a * cols], &of_columns[b * cols], cols);
  const auto size = static_cast<std::int64_t>(n);
  const Tensor vectors = Tensor::from(square, {size, size});
  const Vector values = symmetric_eigen(vectors).to_vector<double>();
  const Vector axes = vectors.to_vector<double>();
  const double off = 2 * margin * (1 + length_of(r) / beta), of_ball = off * off / kWidened;
  Vector quadric(rank * rank);
  for (std::size_t i = 0; i < n; ++i) {
    const double* axis = &axes[i * n];
    Vector row(rank);
    for (std::size_t k = 0; k < n; ++k) row[k] = beta * axis[k];
    row[n] = -dot(axis, r.data(), n);
    const double wide = (1 + kWidened) * (std::max(values[i], 0.0) + of_ball);
    for (std::size_t a = 0; a < rank; ++a)
      for (std::size_t b = 0; b < rank; ++b) quadric[a * rank + b] -= row[a] * row[b] / wide;
  }
  quadric.back() += 1;
  const double length = length_of(quadric);
  if (!std::isfinite(length)) return;
  for (double& entry : quadric) entry /= length;
  set.quadric = std::move(quadric);
}

// What u's last coordinate >= 0 says of the norm of W u + b, z. B'z is R u + r, R triangular, as B
// was made of W's columns in their order, and then of b: so a sum of its last two coordinates is
// u's last one. How far any such sum can be below 0 is what is proved.
void set_side(NormSet& set, const std::vector<Vector>& columns, double margin,
              const Interval& deviations, double eps) {
  const std::size_t cols = columns.size() - 1, rows = columns[0].size();
  const auto rank = static_cast<std::size_t>(set.rank);
  const std::size_t own = set.half ? 2 : 1;  // directions: W's last column's, and b's
  if (rank < own) return;
  const std::size_t by_last = rank - own;
  Vector side(rank);
  if (!(along(set, columns, by_last, cols - 1) > 0)) return;
  side[by_last] = 1;
  if (set.half)
    side[rank - 1] = -along(set, columns, by_last, cols) / along(set, columns, rank - 1, cols);
  const double length = length_of(side);
  for (double& part : side) part /= length;
  const auto of_column = [&](std::size_t column) {
    double sum = 0;
    for (std::size_t k = 0; k < rank; ++k)
      sum += side[k] == 0 ? 0 : side[k] * along(set, columns, k, column);
    return sum;
  };
  Vector down(cols);
  for (std::size_t j = 0; j < cols; ++j) down[j] = of_column(j);
  down[cols - 1] = std::min(down[cols - 1], 0.0);
  const double beyond =
      std::max(length_of(down) - of_column(cols) + margin, 0.0) /
      std::sqrt((deviations.low * deviations.low + eps) * static_cast<double>(rows));
  if (!(beyond < 1)) return;
  set.side = std::move(side);
  set.beyond = beyond;
}

}  // namespace

NormSet normed_after(const Affine& before, const NormSet& given, double lost, double eps,
                     bool centred) {
  const auto cols = static_cast<std::size_t>(before.inputs);
  const Vector of_weights = weight_sizes(before);
  Vector off;
  for (std::size_t j = 0; j < cols; ++j) {
    Vector column;
    for (std::size_t i = j; i < of_weights.size(); i += cols) column.push_back(of_weights[i]);
    off.push_back(lost * length_of(column));
  }
  off.push_back(lost * length_of(bias_sizes(before)));
  NormSpan result = norm_span(before.weight, before.bias, before.inputs, eps, centred, off);
  if (result.set.whole) return result.set;
  const double size = length_of(of_weights) + length_of(bias_sizes(before));
  const std::vector<Vector> columns = columns_of(before, centred);
  const double margin = (kRounding + 3 * lost) * size;
  const Interval apart = deviations(columns, given.inner, margin * size);
  set_lengths(result, apart, eps);
  if (given.half)
    set_side(result.set, columns, margin, apart, eps);
  else
    set_quadric(result.set, columns, margin);
  return result.set;
}

}  // namespace keel
