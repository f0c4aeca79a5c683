#include "scalar_maximum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "../core/max_or_nan.h"

namespace keel {
namespace {

// A NaN, of numbers that left the range, stays: below it nothing is proved.
void offer(ScalarMaximum& best, double value, double y) {
  if (!std::isnan(best.value) && !(value <= best.value)) best = {value, y};
}

// a + b y + c y^2 over an interval that may be empty.
void offer_parabola(ScalarMaximum& best, double a, double b, double c, double low, double high) {
  if (low > high) return;
  const auto at = [&](double y) { offer(best, a + y * (b + y * c), y); };
  at(low);
  at(high);
  if (c >= 0) return;
  const double top = -b / (2 * c);
  if (top > low && top < high) at(top);
}

ScalarMaximum kinked_maximum(const ScalarProblem& p, ScalarMaximum best) {
  // z >= 0 from here on; rounding moves it by less than the caller's margin
  const double kink = p.scale > 0 ? -p.origin / p.scale : (p.origin >= 0 ? p.low : p.high);
  // where phi(z) is slope z
  const auto side = [&](double slope, double low, double high) {
    const double off = slope * p.origin - p.centre, scale = slope * p.scale;
    offer_parabola(best, off * (p.w + p.theta * off),
                   scale * (p.w + 2 * p.theta * off) - p.sigma - p.cross * off,
                   scale * (p.theta * scale - p.cross) - p.kappa, low, high);
  };
  side(1, std::max(p.low, kink), p.high);
  side(p.phi.slope, p.low, std::min(p.high, kink));
  return best;
}

ScalarMaximum smooth_maximum(const ScalarProblem& p, double tolerance, ScalarMaximum best) {
  struct Cell {
    double low, high, at_low, at_high;
  };
  // One is at 0, where a slope may jump.
  constexpr std::array<double, 9> kCuts = {-6, -3, -1.5, -0.75, 0, 0.75, 1.5, 3, 6};
  constexpr int kCells = 64, kMost = 4000;
  std::array<Cell, kCells> stack;
  int depth = 0, looked = 0;
  double low = p.low, at_low = value_at(p, low), proved = best.value;
  const auto add = [&](double high) {
    if (!(high > low)) return;
    const double at_high = value_at(p, high);
    offer(best, at_high, high);
    stack[static_cast<std::size_t>(depth++)] = {low, high, at_low, at_high};
    low = high;
    at_low = at_high;
  };
  if (p.scale > 0)
    for (double cut : kCuts) add(std::min((cut - p.origin) / p.scale, p.high));
  add(p.high);
  while (depth > 0) {
    const Cell cell = stack[static_cast<std::size_t>(--depth)];
    const double from = p.origin + p.scale * cell.low, to = p.origin + p.scale * cell.high;
    const double largest = p.phi.largest(from, to);
    const double steepest = p.phi.steepest(from, to);
    const double farthest = std::max(std::abs(cell.low), std::abs(cell.high));
    const double bend =
        p.phi.curvature(from, to) * p.scale * p.scale *
            (std::abs(p.w) + 2 * std::abs(p.theta) * (largest + std::abs(p.centre)) +
             std::abs(p.cross) * farthest) +
        2 * steepest * p.scale *
            (std::max(-p.theta, 0.0) * steepest * p.scale + std::abs(p.cross)) +
        2 * p.kappa;
    const double length = cell.high - cell.low;
    const double bound =
        max_or_nan(cell.at_low, cell.at_high) + std::max(bend, 0.0) * length * length / 8;
    // Not where multipliers have left double, either: no cut would help.
    const bool open = bound > best.value + tolerance && std::isfinite(bound);
    if (!open || depth + 2 > kCells || ++looked > kMost) {
      proved = max_or_nan(proved, bound);
      continue;
    }
    const double middle = 0.5 * (cell.low + cell.high), at_middle = value_at(p, middle);
    offer(best, at_middle, middle);
    stack[static_cast<std::size_t>(depth++)] = {cell.low, middle, cell.at_low, at_middle};
    stack[static_cast<std::size_t>(depth++)] = {middle, cell.high, at_middle, cell.at_high};
  }
  return {max_or_nan(proved, best.value), best.y};
}

}  // namespace

double value_at(const ScalarProblem& p, double y) {
  const double phi = p.phi(p.origin + p.scale * y) - p.centre;
  return phi * (p.w + p.theta * phi - y * p.cross) - y * (p.sigma + y * p.kappa);
}

ScalarMaximum scalar_maximum(const ScalarProblem& p, double tolerance) {
  const ScalarMaximum start = {value_at(p, p.low), p.low};
  if (!(p.high > p.low)) return start;
  if (p.w == 0 && p.theta == 0 && p.cross == 0) {  // a unit that nothing takes
    ScalarMaximum best = start;
    offer_parabola(best, 0, -p.sigma, -p.kappa, p.low, p.high);
    return best;
  }
  return p.phi.kinked() ? kinked_maximum(p, start) : smooth_maximum(p, tolerance, start);
}

}  // namespace keel
