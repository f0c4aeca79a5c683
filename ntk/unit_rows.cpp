#include "unit_rows.h"

#include <cmath>

#include "length.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

double mean_of(const Vector& x) {
  double mean = 0;
  for (double value : x) mean += value / static_cast<double>(x.size());
  return mean;
}

}  // namespace

UnitRows::UnitRows(const Tail& tail) : rank_(tail.set.rank) {
  const Affine& map = tail.affine[0];
  const std::size_t k = cols();
  for (std::size_t i = 0; i < map.bias.size(); ++i)
    lengths_.push_back(length_of(&map.weight[i * k], k));
  centred_ = tail.set.centred;
  if (tail.direct && tail.set.whole && (k > 1 || !centred_)) {
    if (centred_) {
      inverse_ = 1 / std::sqrt(1 - 1 / static_cast<double>(k));
      square_ = static_cast<double>(k) / static_cast<double>(k - 1);
    }
    for (std::size_t i = 0; i < k; ++i)
      // Also where the gain is 0: the squares of all y must sum to one and the same multiple.
      signs_.push_back(map.weight[i * k + i] < 0 ? -1 : 1);
    return;
  }
  rows_ = map.weight;
  for (std::size_t i = 0; i < lengths_.size(); ++i)
    for (std::size_t j = 0; j < k; ++j)
      rows_[i * k + j] = lengths_[i] > 0 ? rows_[i * k + j] / lengths_[i] : 0;
}

Vector UnitRows::of(const Vector& u) const {
  Vector y(lengths_.size());
  if (signs_alone()) {
    const double mean = centred_ ? mean_of(u) : 0;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = signs_[i] * inverse_ * (u[i] - mean);
    return y;
  }
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < cols(); ++j) y[i] += rows_[i * cols() + j] * u[j];
  return y;
}

Vector UnitRows::transposed(const Vector& sigma) const {
  Vector g(cols());
  if (signs_alone()) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = signs_[i] * inverse_ * sigma[i];
    const double mean = centred_ ? mean_of(g) : 0;
    for (double& value : g) value -= mean;
    return g;
  }
  for (std::size_t i = 0; i < sigma.size(); ++i)
    for (std::size_t j = 0; j < g.size(); ++j) g[j] += sigma[i] * rows_[i * cols() + j];
  return g;
}

Vector UnitRows::gram(const Vector& kappa) const {
  const std::size_t k = cols();
  Vector matrix(k * k);
  for (std::size_t i = 0; i < kappa.size(); ++i)
    for (std::size_t a = 0; a < k; ++a)
      for (std::size_t b = 0; b <= a; ++b)
        matrix[a * k + b] += kappa[i] * rows_[i * k + a] * rows_[i * k + b];
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < a; ++b) matrix[b * k + a] = matrix[a * k + b];
  return matrix;
}

}  // namespace keel
