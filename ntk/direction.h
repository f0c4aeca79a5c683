// Direction: a linear function that is pulled back through a transformer, and Most: what it is at
// most. Both carry what rounding may have cost.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "interval.h"

namespace keel {

/// weight [outputs, inputs] and bias of a dense layer.
struct DenseMap {
  std::vector<double> weight, bias;
  std::size_t inputs() const { return weight.size() / bias.size(); }
  const double* row(std::size_t i) const { return &weight[i * inputs()]; }
};

/// A block of a transformer: queries, keys and values; what takes up what attention mixes of them;
/// hidden units and what takes those up.
struct BlockMaps {
  DenseMap attended, taken, hidden, back;
  std::vector<Interval> units{};  // of the hidden ones, before their relu
};

/// Added to sizes with each product: more, times any margin, than what underflows of one.
inline constexpr double kNothing = 1e-290;

/// What is to be bounded: w . h. `size` is at least |w| as it would be if nothing cancelled in what
/// w is made of: what it lost to rounding is a small part of that.
struct Direction {
  std::vector<double> w, size;
  explicit Direction(std::size_t n) : w(n), size(n) {}

  void add(double factor, double factor_size, const double* row) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] += factor * row[i];
      size[i] += factor_size * std::abs(row[i]) + kNothing;
    }
  }
};

/// The largest value of something, and the sum of the sizes of all that makes it.
struct Most {
  double value = 0, size = 0;

  /// `margin` of the sizes: what rounding took at most.
  double bound(double margin) const { return value + margin * size; }
  Most& operator+=(const Most& other) {
    value += other.value;
    size += other.size + kNothing;
    return *this;
  }
};

inline Most along(const Direction& d, const double* values) {
  Most most;
  for (std::size_t i = 0; i < d.w.size(); ++i)
    most += {d.w[i] * values[i], d.size[i] * std::abs(values[i])};
  return most;
}

}  // namespace keel
