#include "box_layers.h"

#include <algorithm>
#include <cmath>

#include "interval_ends.h"
#include "margin.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

// z / t, as far as is known.
Interval ratio_of(const Forms& given, std::size_t j, const Interval& t) {
  const Interval by_ends = quotient({given.low[j], given.high[j]}, t);
  return given.ratios.empty() ? by_ends : common(given.ratios[j], by_ends);
}

UnitPlanes planes_of(const BoxUnits& units, const Forms& given, std::size_t j, const Interval& t) {
  const Activation phi = units.phi.of(j);
  const Interval z{given.low[j], given.high[j]};
  if (units.scale == UnitScale::perspective)
    return planes_of_perspective(phi, z, ratio_of(given, j, t), t);
  if (units.scale == UnitScale::quotient) return planes_of_quotient(phi, z, t);
  return {lines_of(phi, z)};
}

Interval range_of(const BoxUnits& units, const Forms& given, std::size_t j, const Interval& t) {
  const Activation phi = units.phi.of(j);
  const Interval z{given.low[j], given.high[j]};
  if (units.scale == UnitScale::perspective)
    return range_of_perspective(phi, z, ratio_of(given, j, t), t);
  const Interval u = units.scale == UnitScale::quotient ? quotient(z, t) : z;
  return phi.range(u.low, u.high);
}

void copy_form(const Forms& from, std::size_t unit, Forms& to, std::size_t as) {
  for (std::size_t k = 0; k < from.variables; ++k) to.of(k)[as] = from.of(k)[unit];
  to.centre[as] = from.centre[unit];
  to.radius[as] = from.radius[unit];
  to.low[as] = from.low[unit];
  to.high[as] = from.high[unit];
}

// Of ratios, each by itself.
std::vector<Interval> through(const BoxMap& map, const std::vector<Interval>& given) {
  Vector middle, half, most, of_middle = map.bias, off(map.outputs);
  for (const Interval& ratio : given) {
    middle.push_back(middle_of(ratio));
    half.push_back(half_of(ratio));
    most.push_back(kMargin * most_of(ratio));
  }
  add_product(map.columns, map.inputs, middle.data(), of_middle.data());
  add_product(map.rounded_sizes.empty() ? map.column_sizes : map.rounded_sizes, map.inputs,
              most.data(), off.data());
  add_product(map.column_sizes, map.inputs, half.data(), off.data());
  std::vector<Interval> result;
  for (std::size_t i = 0; i < map.outputs; ++i)
    result.push_back({of_middle[i] - off[i], of_middle[i] + off[i]});
  return result;
}

}  // namespace

Forms through(const BoxMap& map, const Forms& given, Vector& rounded) {
  Forms result = empty_forms(map.outputs, given.variables);
  const auto add = [&map](const Vector& columns, const double* x, double* out) {
    add_product(columns, map.inputs, x, out);
  };
  for (std::size_t k = 0; k < given.variables; ++k) add(map.columns, given.of(k), result.of(k));
  result.centre = map.bias;
  add(map.columns, given.centre.data(), result.centre.data());
  add(map.column_sizes, given.radius.data(), result.radius.data());
  Vector sizes = reaches(given), middle, half;
  for (std::size_t j = 0; j < given.units; ++j) {
    sizes[j] += std::abs(given.centre[j]);
    middle.push_back(given.low[j] + 0.5 * (given.high[j] - given.low[j]));
    half.push_back(std::max(given.high[j] - middle[j], middle[j] - given.low[j]));
  }
  rounded = map.bias_sizes;
  add(map.rounded_sizes.empty() ? map.column_sizes : map.rounded_sizes, sizes.data(),
      rounded.data());
  Vector by_ends = map.bias, off(map.outputs);  // each unit by itself
  add(map.columns, middle.data(), by_ends.data());
  add(map.column_sizes, half.data(), off.data());
  for (std::size_t i = 0; i < map.outputs; ++i) result.radius[i] += kMargin * rounded[i];
  const Vector reach = reaches(result);
  for (std::size_t i = 0; i < map.outputs; ++i) {
    const double by = off[i] + kMargin * rounded[i];
    set_ends(result, i, reach[i], {by_ends[i] - by, by_ends[i] + by});
  }
  if (!given.ratios.empty()) set_ratios(result, through(map, given.ratios));
  return result;
}

Forms through(const BoxUnits& units, const Forms& given, const Interval& t,
              std::vector<UnitPlanes>& planes) {
  const bool scaled = units.scale != UnitScale::one,
             goes_on = units.scale == UnitScale::perspective;
  Forms result = empty_forms(units.units + goes_on, given.variables);
  const Vector before = reaches(given);
  for (std::size_t j = 0; j < units.units; ++j) {
    planes.push_back(planes_of(units, given, j, t));
    const UnitLines& of = planes[j].of_z;
    const double last = planes[j].last, radius = of.radius + planes[j].radius_last * t.high;
    for (std::size_t k = 0; k < given.variables; ++k)
      result.of(k)[j] = of.slope * given.of(k)[j] + (scaled ? last * given.of(k)[units.units] : 0);
    result.centre[j] = of.slope * given.centre[j] + of.middle;
    result.radius[j] = std::abs(of.slope) * given.radius[j] + radius;
    double summed = std::abs(of.slope) * (std::abs(given.centre[j]) + before[j]) + radius;
    if (scaled) {
      result.centre[j] += last * given.centre[units.units];
      result.radius[j] += std::abs(last) * given.radius[units.units];
      summed += std::abs(last) * (std::abs(given.centre[units.units]) + before[units.units]);
    }
    result.radius[j] += kMargin * summed;
  }
  if (goes_on) copy_form(given, units.units, result, units.units);
  const Vector reach = reaches(result);
  for (std::size_t j = 0; j < units.units; ++j) {
    const Interval range = range_of(units, given, j, t);
    const double margin = kMargin * std::max(std::abs(range.low), std::abs(range.high));
    set_ends(result, j, reach[j], {range.low - margin, range.high + margin});
  }
  if (given.ratios.empty()) return result;
  std::vector<Interval> ratios;
  for (std::size_t j = 0; j < units.units; ++j) {
    const Interval u = ratio_of(given, j, t), of = units.phi.of(j).range(u.low, u.high);
    const double margin = kMargin * most_of(of);
    ratios.push_back({of.low - margin, of.high + margin});
  }
  set_ratios(result, std::move(ratios));
  return result;
}

double part_of_last(const Forms& given, std::size_t j, const Interval& t) {
  const Interval z{given.low[j], given.high[j]};
  const double middle = middle_of(t), by_z = half_of(z);
  const double by_t = (least_of(z) / middle + 1) * (t.high - middle);
  return by_t > 0 ? by_t / (by_z + by_t) : 0;
}

Forms sum_of(const Forms& kept, const Forms& added, bool last_stays) {
  const std::size_t units = kept.units - last_stays;
  Forms result = kept;
  for (std::size_t j = 0; j < units; ++j) {
    for (std::size_t k = 0; k < kept.variables; ++k) result.of(k)[j] += added.of(k)[j];
    result.centre[j] += added.centre[j];
    result.radius[j] += added.radius[j];
  }
  const Vector reach = reaches(result);
  const Forms &a = kept, &b = added;
  for (std::size_t j = 0; j < units; ++j) {
    const double margin = kMargin * (a.farthest(j) + b.farthest(j) + reach[j]);
    result.radius[j] += margin;
    set_ends(result, j, reach[j] + margin,
             {a.low[j] + b.low[j] - margin, a.high[j] + b.high[j] + margin});
  }
  if (a.ratios.empty()) return result;
  std::vector<Interval> ratios;
  for (std::size_t j = 0; j < units; ++j) {
    const Interval &one = a.ratios[j], &other = b.ratios[j];
    const double margin = kMargin * (most_of(one) + most_of(other));
    ratios.push_back({one.low + other.low - margin, one.high + other.high + margin});
  }
  set_ratios(result, std::move(ratios));
  return result;
}

}  // namespace keel
