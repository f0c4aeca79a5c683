#include "norm_after.h"

#include <algorithm>
#include <cmath>

#include "../kernels/eigen.h"
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
  const auto along = [&](std::size_t k, std::size_t column) {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += set.basis[i * rank + k] * columns[column][i];
    return sum;
  };
  Vector side(rank);
  if (!(along(by_last, cols - 1) > 0)) return;
  side[by_last] = 1;
  if (set.half) side[rank - 1] = -along(by_last, cols) / along(rank - 1, cols);
  const double length = length_of(side);
  for (double& part : side) part /= length;
  const auto of_column = [&](std::size_t column) {
    double sum = 0;
    for (std::size_t k = 0; k < rank; ++k) sum += side[k] == 0 ? 0 : side[k] * along(k, column);
    return sum;
  };
  Vector down(cols);
  for (std::size_t j = 0; j < cols; ++j) down[j] = of_column(j);
  down[cols - 1] = std::min(down[cols - 1], 0.0);
  const double divisor =
                   std::sqrt((deviations.low * deviations.low + eps) * static_cast<double>(rows)),
               beyond = std::max(length_of(down) - of_column(cols) + margin, 0.0) / divisor;
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
  const Interval apart = deviations(columns, given.inner, (kRounding + 3 * lost) * size * size);
  set_lengths(result, apart, eps);
  if (given.half) set_side(result.set, columns, (kRounding + 3 * lost) * size, apart, eps);
  return result.set;
}

}  // namespace keel
