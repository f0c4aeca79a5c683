// A norm over a box that does not divide yet: what it divides by goes on beside its values.
#pragma once

#include "box_forms.h"
#include "box_net.h"

namespace keel {

/// r = sqrt(mean of c^2 + eps t^2) is the length of a vector that is linear in (c, t), so for any
/// c0 and t0 above its tangent there, and no further than |(c, t) - (c0, t0)|^2 / 2 r0: between two
/// planes of one slope. All else of such a norm is linear in c and r.
class DivisorLines {
 public:
  /// `last`: of t.
  DivisorLines(const BoxNorm& norm, const Forms& given, std::size_t inputs, const Interval& last);

  /// Of the norm's values, gain and bias included, and r; its own variable is `variable`.
  Forms forms(std::size_t variable) const;

  /// Of weights of those: makes them such of what is given, and adds to value what is left of the
  /// sum at most, and to size what rounding of that is measured by. What is lost by each input is
  /// added to `lost`, if there is one.
  void back(std::vector<double>& weights, double& value, double& size,
            std::vector<double>* lost) const;

  /// Of weights of those: no smaller than the largest of their sum over r, however small r is.
  /// `size`: what rounding of the sum is measured by, but for the norm's part.
  double most_ratio(const std::vector<double>& weights, double size,
                    std::vector<double>& lost) const;

 private:
  void add_lost_of_square(double off, std::vector<double>& lost) const;
  Interval range_of(const std::vector<double>& weights) const;

  const BoxNorm& norm_;
  const Forms& given_;
  std::size_t inputs_;
  Interval divisor_{};           // r
  std::vector<double> slope_{};  // of r in what is given; or 0
  double shift_ = 0, sag_ = 0;   // r is slope_ . (c, t) + shift_ + [0, sag_]
  double summed_ = 0;            // what rounding of r is measured by
};

}  // namespace keel
