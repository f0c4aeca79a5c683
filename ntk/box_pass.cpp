#include "box_pass.h"

#include <algorithm>
#include <cmath>

#include "box_layers.h"
#include "margin.h"

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
  Interval last = last_;
  bool of_input = true;
  std::size_t variable = net.inputs;
  std::vector<Forms> kept;
  steps_.resize(net.steps.size());
  for (std::size_t l = 0; l < net.steps.size(); ++l) {
    Step& made = steps_[l];
    made.last = last;
    made.of_input = of_input;
    if (const auto* map = std::get_if<BoxMap>(&net.steps[l])) {
      forms = through(*map, forms, made.rounded);
      if (l == 0 && leaves_ball(box, within)) within_ball(*map, box, within, made.rounded, forms);
    } else if (const auto* units = std::get_if<BoxUnits>(&net.steps[l])) {
      made.given = std::move(forms);
      forms = through(*units, made.given, last, made.planes);
    } else if (const auto* norm = std::get_if<BoxNorm>(&net.steps[l])) {
      made.given = std::move(forms);
      made.norm = std::make_unique<NormLines>(*norm, made.given, net.inputs, last);
      forms = made.norm->forms(variable);
      variable += 1 + net.inputs;
    } else if (const auto* of = std::get_if<BoxDivisor>(&net.steps[l])) {
      made.given = std::move(forms);
      made.divisor = std::make_unique<DivisorLines>(of->norm, made.given, net.inputs, last);
      forms = made.divisor->forms(variable++);
      last = {std::max(forms.low.back(), 0.0), forms.high.back()};
      of_input = false;
    } else if (std::holds_alternative<BoxKeep>(net.steps[l])) {
      kept.push_back(forms);
    } else {
      const auto& add = std::get<BoxAdd>(net.steps[l]);
      if (add.times_last) {
        made.given = std::move(forms);
        made.product = std::make_unique<ProductForms>(made.given, net.inputs, last);
        forms = made.product->forms(variable);
        variable += net.inputs;
      }
      forms = sum_of(kept.back(), forms, add.last_stays);
      kept.pop_back();
    }
  }
  if (!net.divides()) return;
  divisor_ = last;
  given_ = std::move(forms);
}

double BoxPass::bound(const Vector& weights, Vector& lost) const {
  lost.assign(net_.inputs, 0);
  if (net_.divides())
    return open() ? bound_of_ratio(weights, lost) : bound_of_quotient(weights, lost);
  Vector parallel = weights, fitted = weights;
  return std::min(bound_by(Kind::parallel, parallel, &lost),
                  bound_by(Kind::fitted, fitted, nullptr));
}

// Where r may be 0: by planes through z = r = 0 alone, back to the norm that makes r.
double BoxPass::bound_of_ratio(const Vector& weights, Vector& lost) const {
  double best = kInfinity;
  for (const Kind kind : {Kind::parallel, Kind::fitted}) {
    Vector with = weights;
    with.push_back(0);
    std::ranges::fill(lost, 0);
    best = std::min(best, bound_by(kind, with, &lost));
  }
  return best;
}

// F / r is no more than M, whatever M is, where F - M r is no more than 0, and else M and the most
// of that over r (Dinkelbach 1967). A few M, each nearer to where the most is 0, tell.
double BoxPass::bound_of_quotient(const Vector& weights, Vector& lost) const {
  const std::pair<Kind, int> kSteps[] = {{Kind::parallel, 1}, {Kind::fitted, 3}};
  const std::size_t n = net_.outputs;
  const auto of_f = [&](const double* values) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += weights[i] * values[i];
    return sum;
  };
  const double r0 = given_.centre[n], middle = of_f(given_.centre.data()) / r0;
  double reach = 0;
  for (std::size_t k = 0; k < given_.variables; ++k)
    reach += std::abs(of_f(given_.of(k)) - middle * given_.of(k)[n]);
  double by_ratios = 0;
  for (std::size_t i = 0; i < n; ++i)
    by_ratios += std::max(weights[i] * given_.ratios[i].low, weights[i] * given_.ratios[i].high);
  double best = by_ratios < kInfinity ? by_ratios : kInfinity,
         level = std::min(by_ratios, middle + reach / divisor_.low);
  for (const auto& [kind, steps] : kSteps) {
    double level_before = 0, most_before = 0;
    for (int step = 0; step < steps; ++step) {
      Vector with = weights;
      with.push_back(-level);
      const double most = bound_by(kind, with, kind == Kind::parallel ? &lost : nullptr);
      const double above = most / (most > 0 ? divisor_.low : divisor_.high);
      best = std::min(best, level + above + kMargin * (std::abs(level) + std::abs(above)));
      double r = r0;  // where that is the most: by the inputs there, or by how it fell
      for (std::size_t k = 0; k < net_.inputs; ++k)
        if (with[k] != 0) r += std::copysign(1.0, with[k]) * given_.of(k)[n];
      if (step > 0 && level != level_before) r = (most_before - most) / (level - level_before);
      level_before = level;
      most_before = most;
      level += most / std::clamp(r, divisor_.low, divisor_.high);
      if (!std::isfinite(level)) return best;
    }
  }
  return best;
}

// From the last step to the first: weights of f become such of what each step is given.
double BoxPass::bound_by(Kind kind, Vector& weights, Vector* lost) const {
  double value = 0, size = 0;
  std::vector<Vector> passing;
  for (std::size_t l = net_.steps.size(); l-- > 0;) {
    const Step& made = steps_[l];
    if (const auto* map = std::get_if<BoxMap>(&net_.steps[l])) {
      Vector before(map->inputs);
      for (std::size_t i = 0; i < map->outputs; ++i) {
        value += weights[i] * map->bias[i];
        size += std::abs(weights[i]) * made.rounded[i];
      }
      add_product(map->weight, map->outputs, weights.data(), before.data());
      weights = std::move(before);
    } else if (const auto* units = std::get_if<BoxUnits>(&net_.steps[l])) {
      back(kind, *units, made, weights, value, size, lost);
    } else if (made.norm) {
      made.norm->back(weights, value, size, lost);
    } else if (made.divisor) {
      if (open()) return value == 0 ? made.divisor->most_ratio(weights, size, *lost) : kInfinity;
      made.divisor->back(weights, value, size, lost);
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
    const double w = weights[j], radius = of.radius + planes.radius_last * made.last.high;
    size += std::abs(w) * (std::abs(of.middle) + radius +
                           std::max(1.0, std::abs(of.slope)) * made.given.farthest(j) +
                           std::abs(planes.last) * made.last.high);
    if (kind == Kind::fitted) {
      value += w * (w > 0 ? of.up : of.down);
      weights[j] = w * (w > 0 ? of.up_slope : of.down_slope);
      of_last += w * (w > 0 ? planes.up_last : planes.down_last);
      continue;
    }
    value += w * of.middle + std::abs(w) * of.radius;
    weights[j] = w * of.slope;
    of_last += w * planes.last + std::abs(w) * planes.radius_last;
    const double off = std::abs(w) * radius;
    if (!lost || !(off > 0)) continue;
    const double part =
        scaled && made.of_input && !units.phi.kinked() ? part_of_last(made.given, j, made.last) : 0;
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
