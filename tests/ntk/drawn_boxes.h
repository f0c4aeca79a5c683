// Boxes and points of them, drawn for tests of what is bounded there.
#pragma once

#include "../../ntk/box_forms.h"
#include "plain_net.h"

namespace drawn_boxes {

using namespace plain_net;  // NOLINT: a header of tests

inline double fraction_of(Dice& dice) {
  return static_cast<double>(dice.below(1 << 20)) / (1 << 20);
}

inline double share_of(Dice& dice) {  // mostly an end of [-1, 1]
  if (dice.below(4) > 0) return dice.below(2) ? 1 : -1;
  return static_cast<double>(dice.below(2001) - 1000) / 1000;
}

inline Vector point_in(Dice& dice, const Box& box) {
  Vector x;
  for (std::size_t k = 0; k < box.low.size(); ++k) {
    const double parts[] = {0, 1, fraction_of(dice), fraction_of(dice)};
    x.push_back(box.low[k] + parts[dice.below(4)] * (box.high[k] - box.low[k]));
    x[k] = std::clamp(x[k], box.low[k], box.high[k]);
  }
  return x;
}

inline double dot_of(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline Box drawn_box(Dice& dice, std::size_t inputs) {
  Box box;
  const double size = std::pow(10.0, static_cast<double>(dice.below(6)) - 4);
  for (std::size_t k = 0; k < inputs; ++k) {
    const double middle = dice.normal(), half = dice.below(6) == 0 ? 0 : size * fraction_of(dice);
    box.low.push_back(middle - half);
    box.high.push_back(middle + half);
  }
  return box;
}

// How far f goes where weights move by their last digits: a norm of rows that are equal but for
// those sees what rounding left.
inline double moved_by_rounding(Dice& dice, const Net& net, const Vector& x) {
  const Vector f = Plain(net).forward(x);
  double moved = 0;
  for (int twin = 0; twin < 4; ++twin) {
    const Net other = net.clone();
    Vector values = other.flat().to_vector<double>();
    for (double& number : values) number *= 1 + 1e-15 * (dice.below(2) ? 1 : -1);
    copy(other.flat(), Tensor::from(values, other.flat().shape()));
    const Vector there = Plain(other).forward(x);
    for (std::size_t o = 0; o < f.size(); ++o) moved += std::abs(there[o] - f[o]);
  }
  return moved;
}

// Whether f at x is within what was proved of weights . f, but for rounding.
inline bool keeps_to(Dice& dice, const Net& net, const Vector& x, const Vector& weights,
                     double bound) {
  const Vector f = Plain(net).forward(x);
  const double value = dot_of(weights, f);
  double size = 0;
  for (const double of : f) size += std::abs(of);
  return value <= bound + 1e-12 * size || value - bound <= 100 * moved_by_rounding(dice, net, x);
}

}  // namespace drawn_boxes
