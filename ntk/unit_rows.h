// The first units behind a norm as functions of the point that it gives.
#pragma once

#include "tail.h"

namespace keel {

/// First units as functions of u: y_i = row_i . u, each row of length 1, or 0 where the unit is
/// constant. Of every_normed() and no dense layer between, rows are unit vectors, or centred ones,
/// of which only the signs are kept.
class UnitRows {
 public:
  explicit UnitRows(const Tail& tail);
  std::int64_t rank() const { return rank_; }
  const std::vector<double>& lengths() const { return lengths_; }  ///< of the map's rows
  bool signs_alone() const { return !signs_.empty(); }
  /// Of signs alone: sum row_i row_i^T is this times the identity, on vectors of mean 0 if centred.
  double square() const { return square_; }
  const double* row(std::size_t i) const { return &rows_[i * cols()]; }    ///< unless signs alone
  std::vector<double> of(const std::vector<double>& u) const;              ///< row_i . u
  std::vector<double> transposed(const std::vector<double>& sigma) const;  ///< sum sigma_i row_i
  /// sum kappa_i row_i row_i^T, [rank, rank].
  std::vector<double> gram(const std::vector<double>& kappa) const;

 private:
  std::size_t cols() const { return static_cast<std::size_t>(rank_); }
  std::int64_t rank_ = 0;
  bool centred_ = false;
  // 1 over the length of a unit vector less its mean, and its square; of one that keeps it, 1.
  double inverse_ = 1, square_ = 1;
  std::vector<double> lengths_{}, rows_{}, signs_{};
};

}  // namespace keel
