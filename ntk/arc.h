// The half circle on which what a Layer Norm makes of one place's value lies, and quadratics there.
#pragma once

#include <array>
#include <cmath>
#include <numbers>

namespace keel {

struct Angle {
  double sin, cos;
};

inline constexpr int kAngles = 96;  ///< parts of the half circle
inline constexpr double kAngleStep = std::numbers::pi / kAngles;

/// Where the parts begin and end, from -pi/2 to pi/2.
const std::array<Angle, kAngles + 1>& angles();

/// Along the arc of a place: p sin + r cos + a sin^2 + 2 b sin cos + c cos^2.
struct OnArc {
  double p, r, a, b, c;

  double at(const Angle& angle) const {
    return (p + a * angle.sin + 2 * b * angle.cos) * angle.sin + (r + c * angle.cos) * angle.cos;
  }
  double turning() const { return std::hypot((a - c) / 2, b); }  // of the double angle
  double at_most() const { return std::hypot(p, r) + (a + c) / 2 + turning(); }
  // Between two angles it is above the larger by no more than this: |f''| step^2 / 8.
  double between() const {
    return (std::hypot(p, r) + 4 * turning()) * kAngleStep * kAngleStep / 8;
  }
};

/// x'My for unit vectors x and y of two numbers, M = [[a, b], [c, d]]; at most the larger singular
/// value, of which this way of writing it cancels nothing.
struct OfTwoArcs {
  double a, b, c, d;

  double at_most() const { return (length(a + d, b - c) + length(a - d, b + c)) / 2; }
  /// Where it is that: {x, y}, each {sin, cos} in the order of M's rows and columns.
  std::array<Angle, 2> where() const {
    const double sum = std::atan2(b + c, a - d), difference = std::atan2(c - b, a + d);
    const double x = (sum + difference) / 2, y = (sum - difference) / 2;
    return {{{std::cos(x), std::sin(x)}, {std::cos(y), std::sin(y)}}};
  }

 private:
  static double length(double x, double y) {
    constexpr double kSquares = 1e-280;  // below, they lose digits
    const double squares = x * x + y * y;
    return squares > kSquares ? std::sqrt(squares) : std::hypot(x, y);  // the latter is slow
  }
};

}  // namespace keel
