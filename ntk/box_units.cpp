#include "box_units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "margin.h"

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

// What phi(z) - slope z is at least and at most, to within `tolerance`: the interval is halved
// where phi bends too far from its chord for that. `at_low` and `at_high`: that at the ends.
Interval beside_line(const Activation& phi, double slope, const Interval& z, double at_low,
                     double at_high, double tolerance) {
  struct Cell {
    double low, high, at_low, at_high;
  };
  constexpr int kCells = 64, kMost = 2000;
  std::array<Cell, kCells> stack;
  int depth = 0, looked = 0;
  Interval found{at_low, at_low}, proved = found;
  const auto offer = [&found](double value) {
    found = {std::min(found.low, value), std::max(found.high, value)};
  };
  offer(at_high);
  // elu's slope may jump at 0, of which its curvature does not tell.
  const bool jumps = phi.is_elu() && z.low < 0 && z.high > 0;
  const double at_zero = jumps ? phi(0) : at_high, first = jumps ? 0 : z.high;
  offer(at_zero);
  stack[static_cast<std::size_t>(depth++)] = {z.low, first, at_low, at_zero};
  if (jumps) stack[static_cast<std::size_t>(depth++)] = {0, z.high, at_zero, at_high};
  while (depth > 0) {
    const Cell cell = stack[static_cast<std::size_t>(--depth)];
    const double length = cell.high - cell.low,
                 sag = phi.curvature(cell.low, cell.high) * length * length / 8;
    const double most = std::max(cell.at_low, cell.at_high) + sag,
                 least = std::min(cell.at_low, cell.at_high) - sag;
    const bool open = most > found.high + tolerance || least < found.low - tolerance;
    if (!open || depth + 2 > kCells || ++looked > kMost) {
      proved = {std::min(proved.low, least), std::max(proved.high, most)};
      continue;
    }
    const double middle = cell.low + 0.5 * length, at_middle = phi(middle) - slope * middle;
    offer(at_middle);
    // That farther from 0 is the next, and closed at once where the interval goes far.
    Cell nearer{cell.low, middle, cell.at_low, at_middle},
        farther{middle, cell.high, at_middle, cell.at_high};
    if (middle < 0) std::swap(nearer, farther);
    stack[static_cast<std::size_t>(depth++)] = nearer;
    stack[static_cast<std::size_t>(depth++)] = farther;
  }
  return {std::min(proved.low, found.low), std::max(proved.high, found.high)};
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
  const Interval of = beside_line(phi, slope, z, chord, at_high - slope * z.high, tolerance);
  return parallel(slope, of.low, of.high,
                  kMargin * (summed + std::abs(of.low) + std::abs(of.high)));
}

}  // namespace keel
