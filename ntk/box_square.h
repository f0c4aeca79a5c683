// What a norm divides by over a box: the square of it.
#pragma once

#include "box_forms.h"

namespace keel {

/// q = mean of c^2 + eps, of the first `units` values c that have forms; c0 is near the middle of
/// what c may be.
struct BoxSquare {
  BoxSquare(const Forms& c, std::size_t units, const Interval& eps);

  Interval whole{};                           ///< of q
  Interval around{};                          ///< of q, less what is linear in c - c0
  double off = 0;                             ///< the most of the mean of (c - c0)^2
  std::vector<double> centre{}, deviation{};  ///< c0, and the most of |c_i - c0_i|
};

}  // namespace keel
