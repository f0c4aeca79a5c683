// A norm over a box: c / sqrt(mean of c^2 + eps), gain and bias, of values c that have forms.
#pragma once

#include "box_forms.h"
#include "box_net.h"

namespace keel {

/// With s = 1 / sqrt(q), q = mean of c^2 + eps, and some c0 and s0, both near the middle of what
/// the box has,
///   c_i s = s0 c_i + c0_i (s - s0) + (c_i - c0_i)(s - s0);
/// s is convex in q, so between a chord and its parallel; q is c0's, plus what is linear in c - c0,
/// plus a square that is small where the box is; and the last product is one of the box's own e
/// with a number that all units share. Where that is loose a unit is between two numbers.
class NormLines {
 public:
  /// `last`: of the net's last input, if eps goes with it.
  NormLines(const BoxNorm& norm, const Forms& c, std::size_t inputs, const Interval& last);

  /// Of the norm's output, gain and bias included; its 1 + inputs variables begin at `variable`.
  Forms forms(std::size_t variable) const;

  /// Of weights of the norm's output: makes them such of c, and adds to value what is left of the
  /// sum at most, and to size what rounding of that is measured by. What is lost by each input is
  /// added to `lost`, if there is one.
  void back(std::vector<double>& weights, double& value, double& size,
            std::vector<double>* lost) const;

 private:
  void set_root(const Interval& square, const Interval& around);
  void set_unit(std::size_t j);

  const BoxNorm& norm_;
  const Forms& c_;
  std::size_t inputs_;
  std::vector<double> centre_{}, deviation_{};  // c0, and the most of |c_i - c0_i|
  bool open_ = false;                           // q may be 0, as far as double tells
  double root_ = 0, root_off_ = 0;              // s0, and the most of |s - s0|
  // s - s0 = shift_ + slope_ times the sum of 2 c0_i (c_i - c0_i) / units, to within root_radius_.
  double slope_ = 0, shift_ = 0, root_radius_ = 0;
  double low_root_ = 0, high_root_ = 0;
  std::vector<Interval> range_{};  // of c_i s
  std::vector<bool> flat_{};       // unit i is between two numbers, and no more is known
  std::vector<double> own_{};      // what of c_i - c0_i is of no input's e
};

}  // namespace keel
