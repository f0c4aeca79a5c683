// Adam's moments (Kingma and Ba 2015) of a slope.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace keel {

class Adam {
 public:
  explicit Adam(std::size_t n) : first_(n), second_(n) {}

  /// Before each step.
  void next() {
    ++steps_;
    whole_ = 1 - std::pow(kFirst, steps_);
    squares_ = 1 - std::pow(kSecond, steps_);
  }
  /// Uphill in number i, of size 1 where its slope stays the same; less where that is below
  /// `floor`.
  double up(std::size_t i, double slope, double floor) {
    first_[i] = kFirst * first_[i] + (1 - kFirst) * slope;
    second_[i] = kSecond * second_[i] + (1 - kSecond) * slope * slope;
    return (first_[i] / whole_) / (std::sqrt(second_[i] / squares_) + floor);
  }

 private:
  static constexpr double kFirst = 0.9, kSecond = 0.99;
  std::vector<double> first_, second_;
  int steps_ = 0;
  double whole_ = 1, squares_ = 1;
};

}  // namespace keel
