#include "box_maps.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "length.h"
#include "norm_span.h"

namespace keel {

using Vector = std::vector<double>;

Affine centred(Affine map) {
  const auto rows = static_cast<std::size_t>(map.outputs),
             cols = static_cast<std::size_t>(map.inputs);
  Vector sizes = weight_sizes(map), of_bias = bias_sizes(map);
  const auto take_mean = [rows](Vector& values, Vector& by, std::size_t begin, std::size_t step) {
    Vector column;
    double size = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      column.push_back(values[begin + i * step]);
      size += by[begin + i * step] / static_cast<double>(rows);
    }
    centre(column);
    for (std::size_t i = 0; i < rows; ++i) {
      values[begin + i * step] = column[i];
      by[begin + i * step] += size;
    }
  };
  for (std::size_t j = 0; j < cols; ++j) take_mean(map.weight, sizes, j, cols);
  take_mean(map.bias, of_bias, 0, 1);
  map.weight_sizes = std::move(sizes);
  map.bias_sizes = std::move(of_bias);
  return map;
}

Affine with_bias_of_last(const Affine& map, bool goes_on) {
  const auto rows = static_cast<std::size_t>(map.outputs),
             cols = static_cast<std::size_t>(map.inputs);
  Affine result{map.outputs + goes_on, map.inputs + 1, {}, Vector(rows + goes_on)};
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = map.weight.begin() + static_cast<std::ptrdiff_t>(i * cols);
    result.weight.insert(result.weight.end(), row, row + static_cast<std::ptrdiff_t>(cols));
    result.weight.push_back(map.bias[i]);
  }
  if (goes_on) {
    result.weight.resize(result.weight.size() + cols);
    result.weight.push_back(1);
  }
  return result;
}

Affine beside_last(Affine map) {
  const auto cols = static_cast<std::size_t>(map.inputs);
  ++map.outputs;
  for (Vector* matrix : {&map.weight, &map.weight_sizes}) {
    if (matrix == &map.weight_sizes && matrix->empty()) continue;
    matrix->resize(matrix->size() + cols);
    matrix->back() = 1;
  }
  map.bias.push_back(0);
  if (!map.bias_sizes.empty()) map.bias_sizes.push_back(0);
  return map;
}

Affine spherical_change(const Affine& map, bool centres) {
  constexpr double kLeast = 1e-3;  // of R's diagonal, in parts of the column's length
  const auto rows = static_cast<std::size_t>(map.outputs), n = static_cast<std::size_t>(map.inputs);
  std::vector<Vector> columns(n, Vector(rows));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < n; ++j) columns[j][i] = map.weight[i * n + j];
  std::vector<Vector> r(n, Vector(n));
  double most = 0;
  Vector lengths;
  for (std::size_t j = 0; j < n; ++j) {
    if (centres) centre(columns[j]);
    lengths.push_back(length_of(columns[j]));
    most = std::max(most, lengths[j]);
  }
  Affine change = identity_map(map.inputs);
  if (!(most > 0) || !std::isfinite(most)) return change;
  for (std::size_t j = 0; j < n; ++j) {
    r[j][j] = std::max(length_of(columns[j]), kLeast * (lengths[j] > 0 ? lengths[j] : most));
    for (double& x : columns[j]) x /= r[j][j];
    for (std::size_t k = j + 1; k < n; ++k) {
      r[j][k] = dot(columns[j].data(), columns[k].data(), rows);
      for (std::size_t i = 0; i < rows; ++i) columns[k][i] -= r[j][k] * columns[j][i];
    }
  }
  for (std::size_t col = 0; col < n; ++col)
    for (std::size_t i = col + 1; i-- > 0;) {
      double sum = i == col ? r[n - 1][n - 1] : 0;
      for (std::size_t k = i + 1; k <= col; ++k) sum -= r[i][k] * change.weight[k * n + col];
      change.weight[i * n + col] = sum / r[i][i];
    }
  change.weight[n * n - 1] = 1;  // as it is, but for rounding
  return change;
}

}  // namespace keel
