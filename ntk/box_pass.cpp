#include "box_pass.h"

#include <algorithm>
#include <cmath>

#include "units.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

double farthest(const Box& box, std::size_t k) {
  return std::max(std::abs(box.low[k]), std::abs(box.high[k]));
}

bool leaves_ball(const Box& box, double within) {
  double square = 0;
  for (std::size_t k = 0; k < box.low.size(); ++k) square += std::pow(farthest(box, k), 2);
  return square > within * within;
}

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
  return result;
}

UnitPlanes planes_of(const BoxUnits& units, std::size_t j, const Interval& z, const Interval& t) {
  const Activation phi = units.phi.of(j);
  if (units.scale == UnitScale::perspective) return planes_of_perspective(phi, z, t);
  if (units.scale == UnitScale::quotient) return planes_of_quotient(phi, z, t);
  return {lines_of(phi, z)};
}

Interval range_of(const BoxUnits& units, std::size_t j, const Interval& z, const Interval& t) {
  const Activation phi = units.phi.of(j);
  if (units.scale == UnitScale::perspective) return range_of_perspective(phi, z, t);
  const Interval u = units.scale == UnitScale::quotient ? quotient(z, t) : z;
  return phi.range(u.low, u.high);
}

// Of a variable beside all others: the unit `to` is what `from` is.
void copy_form(const Forms& from, std::size_t unit, Forms& to, std::size_t as) {
  for (std::size_t k = 0; k < from.variables; ++k) to.of(k)[as] = from.of(k)[unit];
  to.centre[as] = from.centre[unit];
  to.radius[as] = from.radius[unit];
  to.low[as] = from.low[unit];
  to.high[as] = from.high[unit];
}

Forms through(const BoxUnits& units, const Forms& given, const Interval& t,
              std::vector<UnitPlanes>& planes) {
  const bool scaled = units.scale != UnitScale::one,
             goes_on = units.scale == UnitScale::perspective;
  Forms result = empty_forms(units.units + goes_on, given.variables);
  const Vector before = reaches(given);
  for (std::size_t j = 0; j < units.units; ++j) {
    planes.push_back(planes_of(units, j, {given.low[j], given.high[j]}, t));
    const UnitLines& of = planes[j].of_z;
    const double last = planes[j].last;
    for (std::size_t k = 0; k < given.variables; ++k)
      result.of(k)[j] = of.slope * given.of(k)[j] + (scaled ? last * given.of(k)[units.units] : 0);
    result.centre[j] = of.slope * given.centre[j] + of.middle;
    result.radius[j] = std::abs(of.slope) * given.radius[j] + of.radius;
    double summed = std::abs(of.slope) * (std::abs(given.centre[j]) + before[j]) + of.radius;
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
    const Interval range = range_of(units, j, {given.low[j], given.high[j]}, t);
    const double margin = kMargin * std::max(std::abs(range.low), std::abs(range.high));
    set_ends(result, j, reach[j], {range.low - margin, range.high + margin});
  }
  return result;
}

// Of what z / t loses, how much t's side of a box costs: of z about 0 it is z's, but for what is as
// wide as t.
double part_of_last(const Forms& given, std::size_t j, const Interval& t) {
  const double low = given.low[j], high = given.high[j], middle = t.low + 0.5 * (t.high - t.low);
  const double nearest = low > 0 ? low : high < 0 ? -high : 0, by_z = 0.5 * (high - low);
  const double by_t = (nearest / middle + 1) * (t.high - middle);
  return by_t > 0 ? by_t / (by_z + by_t) : 0;
}

// Both are of the same e. What `kept` has more, or one that stays, is as it was there.
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
  return result;
}

// Of the first map: no more than the ball allows.
void within_ball(const BoxMap& map, const Box& box, double within, const Vector& rounded,
                 Forms& forms) {
  for (std::size_t i = 0; i < map.outputs; ++i) {
    Vector row(&map.weight[i * map.inputs], &map.weight[i * map.inputs] + map.inputs);
    const double margin = kMargin * rounded[i], up = largest_in_ball(row, box, within);
    for (double& w : row) w = -w;
    const double down = largest_in_ball(row, box, within);
    const Interval of{map.bias[i] - down - margin, map.bias[i] + up + margin};
    if (!(of.low <= of.high)) continue;  // none of the box is in it, or rounding has it so
    forms.low[i] = std::max(forms.low[i], std::min(of.low, forms.high[i]));
    forms.high[i] = std::min(forms.high[i], std::max(of.high, forms.low[i]));
  }
}

}  // namespace

BoxPass::BoxPass(const BoxNet& net, const Box& box, double within)
    : net_(net), box_(box), within_(within), last_{box.low.back(), box.high.back()} {
  Forms forms = forms_of(box, net.variables());
  std::size_t variable = net.inputs;
  std::vector<Forms> kept;
  steps_.resize(net.steps.size());
  for (std::size_t l = 0; l < net.steps.size(); ++l) {
    Step& made = steps_[l];
    if (const auto* map = std::get_if<BoxMap>(&net.steps[l])) {
      forms = through(*map, forms, made.rounded);
      if (l == 0 && leaves_ball(box, within)) within_ball(*map, box, within, made.rounded, forms);
    } else if (const auto* units = std::get_if<BoxUnits>(&net.steps[l])) {
      made.given = std::move(forms);
      forms = through(*units, made.given, last_, made.planes);
    } else if (const auto* norm = std::get_if<BoxNorm>(&net.steps[l])) {
      made.given = std::move(forms);
      made.norm = std::make_unique<NormLines>(*norm, made.given, net.inputs, last_);
      forms = made.norm->forms(variable);
      variable += 1 + net.inputs;
    } else if (std::holds_alternative<BoxKeep>(net.steps[l])) {
      kept.push_back(forms);
    } else {
      const auto& add = std::get<BoxAdd>(net.steps[l]);
      if (add.times_last) {
        made.given = std::move(forms);
        made.product = std::make_unique<ProductForms>(made.given, net.inputs, last_);
        forms = made.product->forms(variable);
        variable += net.inputs;
      }
      forms = sum_of(kept.back(), forms, add.last_stays);
      kept.pop_back();
    }
  }
}

double BoxPass::bound(const Vector& weights, Vector& lost) const {
  lost.assign(net_.inputs, 0);
  return std::min(bound_by(Kind::parallel, weights, &lost),
                  bound_by(Kind::fitted, weights, nullptr));
}

// From the last step to the first: weights of f become such of what each step is given.
double BoxPass::bound_by(Kind kind, Vector weights, Vector* lost) const {
  double value = 0, size = 0;
  std::vector<Vector> passing;
  for (std::size_t l = net_.steps.size(); l-- > 0;) {
    const Step& made = steps_[l];
    if (const auto* map = std::get_if<BoxMap>(&net_.steps[l])) {
      Vector before(map->inputs);
      for (std::size_t i = 0; i < map->outputs; ++i) {
        const double w = weights[i], *row = &map->weight[i * map->inputs];
        if (w == 0) continue;
        value += w * map->bias[i];
        size += std::abs(w) * made.rounded[i];
        for (std::size_t j = 0; j < map->inputs; ++j) before[j] += w * row[j];
      }
      weights = std::move(before);
    } else if (const auto* units = std::get_if<BoxUnits>(&net_.steps[l])) {
      back(kind, *units, made, weights, value, size, lost);
    } else if (made.norm) {
      made.norm->back(weights, value, size, lost);
    } else if (const auto* add = std::get_if<BoxAdd>(&net_.steps[l])) {
      passing.push_back(weights);
      if (add->last_stays) weights.back() = 0;
      if (!add->times_last) continue;
      weights.pop_back();
      passing.back().back() += made.product->back(weights, value, size, lost);
    } else {
      for (std::size_t j = 0; j < weights.size(); ++j) weights[j] += passing.back()[j];
      passing.pop_back();
    }
  }
  value += of_inputs(weights, size);
  return value + kMargin * (size + std::abs(value));
}

void BoxPass::back(Kind kind, const BoxUnits& units, const Step& made, Vector& weights,
                   double& value, double& size, Vector* lost) const {
  const bool scaled = units.scale != UnitScale::one;
  double of_last = units.scale == UnitScale::perspective ? weights[units.units] : 0;
  for (std::size_t j = 0; j < units.units; ++j) {
    const UnitPlanes& planes = made.planes[j];
    const UnitLines& of = planes.of_z;
    const double w = weights[j], off = std::abs(w) * of.radius;
    size += std::abs(w) * (std::abs(of.middle) + of.radius +
                           std::max(1.0, std::abs(of.slope)) * made.given.farthest(j) +
                           std::abs(planes.last) * last_.high);
    if (kind == Kind::fitted) {
      value += w * (w > 0 ? of.up : of.down);
      weights[j] = w * (w > 0 ? of.up_slope : of.down_slope);
      of_last += w * (w > 0 ? planes.up_last : planes.down_last);
      continue;
    }
    value += w * of.middle + off;
    weights[j] = w * of.slope;
    of_last += w * planes.last;
    if (!lost || !(off > 0)) continue;
    const double part = scaled && !units.phi.kinked() ? part_of_last(made.given, j, last_) : 0;
    add_lost(made.given, j, off * (1 - part), *lost);
    lost->back() += off * part;
  }
  if (!scaled) return;
  weights.resize(units.units);
  weights.push_back(of_last);
}

double BoxPass::of_inputs(const Vector& weights, double& size) const {
  double value = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    value += std::max(weights[k] * box_.low[k], weights[k] * box_.high[k]);
    size += std::abs(weights[k]) * farthest(box_, k);
  }
  if (!leaves_ball(box_, within_)) return value;
  return std::min(value, largest_in_ball(weights, box_, within_));
}

// For every eta >= 0 it is at most eta within^2 / 2 + the largest w . x - eta |x|^2 / 2 of the box,
// which is one of each x by itself. That is convex in eta, and its slope says where the least is.
double largest_in_ball(const Vector& weights, const Box& box, double within) {
  constexpr int kSteps = 24;  // the value is near its least long before eta is
  const double wanted = within * within;
  double best = kInfinity;
  // |x|^2 where that is; it falls with eta.
  const auto square_at = [&](double eta) {
    double value = 0.5 * eta * wanted, square = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double w = weights[k], free = w == 0 ? 0 : eta > 0 ? w / eta : w * kInfinity;
      const double x = std::clamp(free, box.low[k], box.high[k]);
      value += x * (w - 0.5 * eta * x);
      square += x * x;
    }
    best = std::min(best, value);
    return square;
  };
  if (square_at(0) <= wanted) return best;
  double size = 0;
  for (double w : weights) size = std::max(size, std::abs(w));
  double low = 0, high = size / within;
  for (int step = 0; step < kSteps && square_at(high) > wanted; ++step) {
    low = high;
    high *= 2;
  }
  for (int step = 0; step < kSteps; ++step) {
    const double eta = low + 0.5 * (high - low);
    (square_at(eta) > wanted ? low : high) = eta;
  }
  return best;
}

}  // namespace keel
