#include "perspective.h"

#include <algorithm>
#include <cmath>

#include "interval_ends.h"
#include "margin.h"

namespace keel {
namespace {

Interval rounded_outward(const Interval& interval) {
  return {interval.low - kMargin * std::abs(interval.low),
          interval.high + kMargin * std::abs(interval.high)};
}

UnitPlanes by_lines_far_out(const Activation& phi, const Interval& z, const Interval& u,
                            const Interval& t) {
  const Interval more = rounded_outward(phi.beside_relu(u.low, u.high));
  UnitPlanes planes{lines_of(LayerKind::relu, z), middle_of(more), more.high, more.low};
  UnitLines& of = planes.of_z;
  for (double* number :
       {&of.slope, &of.middle, &of.radius, &of.up_slope, &of.up, &of.down_slope, &of.down})
    *number *= phi.above;
  of.radius += (half_of(more) + kMargin * most_of(more)) * t.high + kMargin * of.radius;
  return planes;
}

UnitPlanes by_line_of_quotient(const Activation& phi, const Interval& u) {
  const UnitLines of = lines_of(phi, u);
  UnitPlanes planes{{of.slope}, of.middle};
  planes.radius_last = of.radius;
  planes.of_z.up_slope = of.up_slope;
  planes.of_z.down_slope = of.down_slope;
  planes.up_last = of.up;
  planes.down_last = of.down;
  return planes;
}

// A mean of t, near its least where they are far apart: what is lost counts by how much it is of t.
double near_least(const Interval& t) {
  constexpr double kOfLeast = 0.7;  // 0.6 to 0.8 do as well
  return t.high > 0 ? t.low / (kOfLeast + (1 - kOfLeast) * t.low / t.high) : 0;
}

constexpr double kFarOut = 1e3;  // where phi is what it is far out, but for next to nothing

}  // namespace

Interval quotient(const Interval& z, const Interval& t) {
  const auto over = [](double of, double by) {
    return of == 0 ? 0 : by > 0 ? of / by : std::copysign(kInfinity, of);
  };
  return rounded_outward(
      {over(z.low, z.low < 0 ? t.low : t.high), over(z.high, z.high > 0 ? t.low : t.high)});
}

UnitPlanes planes_of_perspective(const Activation& phi, const Interval& z, const Interval& u,
                                 const Interval& t) {
  if (phi.kinked()) {
    const UnitPlanes alone{lines_of(phi, z)};
    if (!std::isfinite(most_of(u))) return alone;
    const UnitPlanes both = by_line_of_quotient(phi, u);
    return both.radius_last * near_least(t) < alone.of_z.radius ? both : alone;
  }
  if (bounds_units(phi.kind)) return by_line_of_quotient(phi, u);
  const UnitPlanes far = by_lines_far_out(phi, z, u, t);
  if (!(most_of(u) < kFarOut)) return far;
  const UnitPlanes near = by_line_of_quotient(phi, u);
  return t.low == 0 || near.radius_last * t.high < far.of_z.radius ? near : far;
}

// Its slope in t is phi(u) - u phi'(u), u = z / t: -u^2 times a number above 0 of gelu and silu,
// below 0 of elu as well, and above 0 of softplus alone. In z it rises as phi does.
Interval range_of_perspective(const Activation& phi, const Interval& z, const Interval& u,
                              const Interval& t) {
  if (bounds_units(phi.kind)) {
    const Interval of = phi.range(u.low, u.high);
    return rounded_outward(
        {of.low * (of.low < 0 ? t.high : t.low), of.high * (of.high > 0 ? t.high : t.low)});
  }
  if (phi.kinked()) return rounded_outward(phi.range(z.low, z.high));
  const auto at = [&phi](double z, double t) {
    const double u = z == 0 ? 0 : z / t;
    return std::isfinite(u) ? t * phi(u) : phi.above * std::max(z, 0.0);
  };
  if (phi.kind == LayerKind::softplus)
    return rounded_outward({at(z.low, t.low), at(z.high, t.high)});
  const double high = std::max(at(z.low, t.low), at(z.high, t.low));
  if (z.low >= 0 || phi.is_elu()) return rounded_outward({at(z.low, t.high), high});
  return rounded_outward({t.high * phi.beside_relu(u.low, u.high).low, high});
}

UnitPlanes planes_of_quotient(const Activation& phi, const Interval& z, const Interval& t) {
  const Interval u = quotient(z, t), range = rounded_outward(phi.range(u.low, u.high));
  const double middle = middle_of(range), half = std::max(range.high - middle, middle - range.low);
  const UnitPlanes flat{{0, middle, half, 0, middle + half, 0, middle - half}};
  const double product = t.low * t.high;
  if (!(product > 0) || !std::isfinite(1 / product) || !(most_of(u) < kFarOut)) return flat;
  const UnitLines of_u = lines_of(phi, u);
  const double z0 = middle_of(z), off_z = std::max(z.high - z0, z0 - z.low);
  const double most_s = 1 / t.low, least_s = 1 / t.high, s0 = middle_of({least_s, most_s});
  const double off_s = std::max(most_s - s0, s0 - least_s);
  const double slope = -1 / product, chord = least_s + most_s, touches = 2 / std::sqrt(product);
  const double beside = middle_of({touches, chord});
  const double a = of_u.slope, summed = s0 * most_of(z) + std::abs(z0) * (chord + s0);
  UnitPlanes planes;
  planes.last = planes.up_last = planes.down_last = a * z0 * slope;
  UnitLines& of = planes.of_z;
  of.slope = of.up_slope = of.down_slope = a * s0;
  of.middle = a * z0 * (beside - s0) + of_u.middle;
  of.radius = std::abs(a) * (std::abs(z0) * half_of({touches, chord}) + off_z * off_s) +
              of_u.radius + kMargin * (std::abs(a) * summed + std::abs(of_u.middle));
  of.up = of.middle + of.radius;
  of.down = of.middle - of.radius;
  return of.radius < half ? planes : flat;
}

}  // namespace keel
