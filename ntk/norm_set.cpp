#include "norm_set.h"

#include <cmath>

namespace keel {
namespace {

using Vector = std::vector<double>;

// Columns nearer than this to the others' span, or to constants, are within rounding of them.
constexpr double kIndependent = 1e-8;

double norm(const Vector& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Relative to the first element: a column of equal numbers becomes exactly 0.
void centre(Vector& x) {
  const double first = x[0];
  double mean = 0;
  for (double& value : x) mean += value -= first;
  mean /= static_cast<double>(x.size());
  for (double& value : x) value -= mean;
}

enum class Added { nothing, direction, unclear };

// Gram and Schmidt, twice: once more than enough to be orthogonal to the last digits.
Added add_direction(std::vector<Vector>& columns, Vector x, double& distance) {
  const double given = norm(x);
  centre(x);
  const double centred = norm(x);
  if (centred == 0) return Added::nothing;
  for (int pass = 0; pass < 2; ++pass)
    for (const Vector& column : columns) {
      double along = 0;
      for (std::size_t i = 0; i < x.size(); ++i) along += column[i] * x[i];
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * column[i];
    }
  distance = norm(x);
  if (!(distance > kIndependent * given)) return Added::unclear;
  for (double& value : x) value /= distance;
  columns.push_back(std::move(x));
  return Added::direction;
}

}  // namespace

NormSet every_normed(std::int64_t width) {
  NormSet set;
  set.width = width;
  set.rank = width;
  return set;
}

NormSet normed_after_dense(const Vector& weight, const Vector& bias, std::int64_t inputs,
                           double eps) {
  const auto width = static_cast<std::int64_t>(bias.size());
  const NormSet every = every_normed(width);
  if (inputs + 1 >= width - 1) return every;
  std::vector<Vector> columns;
  double distance = 0;
  for (std::int64_t j = 0; j < inputs; ++j) {
    Vector column;
    for (std::int64_t i = 0; i < width; ++i)
      column.push_back(weight[static_cast<std::size_t>(i * inputs + j)]);
    if (add_direction(columns, std::move(column), distance) == Added::unclear) return every;
  }
  const Added by_bias = add_direction(columns, bias, distance);
  if (by_bias == Added::unclear || columns.empty()) return every;

  NormSet set;
  set.width = width;
  set.rank = static_cast<std::int64_t>(columns.size());
  set.whole = false;
  // The bias has the weight +1 in every z: its own direction is never left, nor turned round.
  set.half = by_bias == Added::direction;
  if (set.half) {
    const double variance = distance * distance / static_cast<double>(width);
    set.inner = std::sqrt(variance / (variance + eps)) * (1 - 1e-9);
  }
  set.basis.resize(static_cast<std::size_t>(width * set.rank));
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < columns[j].size(); ++i)
      set.basis[i * columns.size() + j] = columns[j][i];
  return set;
}

}  // namespace keel
