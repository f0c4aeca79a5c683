// The units that a net sees rows in: by the mean and deviation of those it was trained on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../core/tensor.h"
#include "examples.h"

namespace keel {

/// What `keel train` writes into the metadata of weights: --standardise; and, unless it is none,
/// mean and deviation of each feature and of the target: "[[mean, deviation], ...]".
inline constexpr const char *kStandardiseKey = "keel.standardise", *kColumnsKey = "keel.columns";

enum class Standardise { none, x, xy };

/// "none", "x" or "xy". Throws keel::Error for anything else.
Standardise parse_standardise(const std::string& text);

/// (value - mean) / population standard deviation, by the statistics of the training rows.
/// A constant column has no deviation: it is divided by 1, so that it becomes 0 in training.
class Standardiser {
 public:
  Standardiser(Standardise what, const Examples& training);

  /// Leaves everything as it is.
  static Standardiser none(std::int64_t features);

  /// As columns() says it, of a net of `features`. Throws DataError, naming the file `weights`,
  /// where `text` is none of it, and ShapeError where it is of another number of features.
  static Standardiser of_columns(const std::string& text, const std::string& weights,
                                 std::int64_t features);

  /// With x in the units of `other`, of as many features; y in its own.
  Standardiser with_x_of(const Standardiser& other) const;

  std::int64_t features() const { return std::ssize(x_); }
  bool moves_x() const;  ///< false where x is left as it is

  std::vector<double> x(const Examples& examples) const;  ///< [rows, features]
  std::vector<double> y(const Examples& examples) const;  ///< [rows]
  double y_in_own_units(double standardised) const { return standardised * y_.scale + y_.mean; }
  std::vector<double> y_in_own_units(std::vector<double> standardised) const;
  double y_mean() const { return y_.mean; }    ///< 0 where y is left as it is
  double y_scale() const { return y_.scale; }  ///< 1 where y is left as it is

  /// As tensors on `device`, float64: [rows, features], and [rows, 1].
  Tensor inputs(const Examples& examples, Device device) const;
  Tensor targets(const Examples& examples, Device device) const;

  /// One standardised input in the units of the table.
  std::vector<double> x_in_own_units(const std::vector<double>& standardised) const;

  /// Features that never change in training, from which nothing can be learnt.
  const std::vector<std::int64_t>& constant_features() const { return constant_; }

  /// kColumnsKey's text.
  std::string columns() const;

  /// Throws DataError where `text`, kColumnsKey's of the file `weights`, says that a column of
  /// `examples`, whose statistics these are, had another mean or deviation in training; `target` is
  /// its name. Rounding, as of another machine, is no difference.
  void check_columns(const std::string& text, const std::string& weights, const Examples& examples,
                     const std::string& target) const;

 private:
  struct Column {
    double mean = 0, scale = 1;
  };
  Standardiser() = default;
  const Column& column(std::size_t i) const { return i < x_.size() ? x_[i] : y_; }
  std::vector<Column> x_;
  Column y_;
  std::vector<std::int64_t> constant_;
};

/// A line on one of these, of `file`.
std::string constant_note(const Examples& training, std::int64_t feature, const std::string& file);

}  // namespace keel
