#include "box_units.h"

#include <algorithm>
#include <cmath>

#include "scalar_maximum.h"
#include "units.h"

namespace keel {
namespace {

UnitLines parallel(double slope, double low, double high, double margin) {
  UnitLines lines{slope, low + 0.5 * (high - low)};
  lines.radius = std::max(high - lines.middle, lines.middle - low) + margin;
  lines.up_slope = lines.down_slope = slope;
  lines.up = lines.middle + lines.radius;
  lines.down = lines.middle - lines.radius;
  return lines;
}

// Two lines through 0, z above it and slope z below.
UnitLines lines_of_kinked(double slope, const Interval& z) {
  if (z.low >= 0) return parallel(1, 0, 0, 0);
  if (z.high <= 0) return parallel(slope, 0, 0, 0);
  const double chord = (z.high - slope * z.low) / (z.high - z.low);
  const double at_ends = z.high * (1 - chord);  // above the chord's parallel through 0
  const double margin = kMargin * std::max(1.0, std::abs(slope)) * (z.high - z.low);
  UnitLines lines = parallel(chord, std::min(at_ends, 0.0), std::max(at_ends, 0.0), margin);
  const double nearer = z.high > -z.low ? 1 : slope;
  if (slope <= 1) {
    lines.down_slope = nearer;
    lines.down = 0;
  } else {
    lines.up_slope = nearer;
    lines.up = 0;
  }
  return lines;
}

}  // namespace

UnitLines lines_of(const Activation& phi, const Interval& z) {
  if (phi.kinked()) return lines_of_kinked(phi.slope, z);
  constexpr double kTolerance = 1e-2;  // of phi's range
  const double at_low = phi(z.low), at_high = phi(z.high), length = z.high - z.low;
  if (!(length > 0)) return parallel(0, at_low, at_low, kMargin * std::abs(at_low));
  const double slope = (at_high - at_low) / length, chord = at_low - slope * z.low;
  const double summed = std::abs(slope) * std::max(std::abs(z.low), std::abs(z.high)) +
                        std::abs(at_low) + std::abs(at_high);
  const Interval range = phi.range(z.low, z.high);
  const double tolerance = kTolerance * (range.high - range.low);
  // elu's slope may jump at 0, of which its curvature does not tell.
  const bool jumps = phi.is_elu() && z.low < 0 && z.high > 0;
  const double sag = phi.curvature(z.low, z.high) * length * length / 8;
  if (!jumps && sag <= tolerance)
    return parallel(slope, chord - sag, chord + sag, kMargin * (summed + sag));
  const double middle = z.low + 0.5 * length;
  const double half = std::max(z.high - middle, middle - z.low);
  ScalarProblem problem{.phi = phi, .w = 1, .sigma = slope * half, .origin = middle, .scale = half};
  const double up = scalar_maximum(problem, tolerance).value;
  problem.w = -1;
  problem.sigma = -slope * half;
  const double down = -scalar_maximum(problem, tolerance).value;
  return parallel(slope, down - slope * middle, up - slope * middle,
                  kMargin * (summed + std::abs(up) + std::abs(down)));
}

}  // namespace keel
