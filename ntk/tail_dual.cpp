#include "tail_dual.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "norm_image.h"

namespace keel {
using Vector = std::vector<double>;

TailDual::TailDual(const UnitRows& rows, const NormSet& set, const std::vector<Units>& layers,
                   std::size_t depth, bool one_kappa, bool with_image)
    : rows_(rows),
      set_(set),
      layers_(layers),
      depth_(depth),
      one_kappa_(one_kappa || set.box),
      image_(with_image ? set.image.get() : nullptr),
      at_(layers, depth, one_kappa_, set, image_),
      over_inputs_(rows, set, layers[0].size(), one_kappa_) {}

TailDual::TailDual(const TailDual& whole, const std::vector<Units>& layers)
    : rows_(whole.rows_),
      set_(whole.set_),
      layers_(layers),
      depth_(whole.depth_),
      one_kappa_(whole.one_kappa_),
      image_(whole.image_),
      at_(whole.at_),
      over_inputs_(whole.over_inputs_) {}

// One evaluation on its way from the last layer to the first.
struct TailDual::Pass {
  Value value;
  Vector& gradient;
  double tolerance;
  std::vector<Coupling>& couplings;
  Vector w;                               // of the values phi - centre of the layer at hand
  Vector w_summed;                        // sizes of what makes w
  std::vector<Vector> y{}, deviations{};  // of each layer: where its maxima are, and phi - centre
  std::vector<Vector> made{};             // phi - centre, of units that pass by what makes them
  std::vector<Vector> sigma{};
  Vector kappa{};  // of the first layer
};

ScalarProblem TailDual::problem(std::size_t layer, std::size_t j, const Vector& x, double w) const {
  const Units& all = layers_[layer];
  const double* kappa = &x[at_.coupling[layer].kappa];
  const bool free = layer == 0 && set_.box;  // no u gives back what multipliers would take
  return {.phi = all.phi(j),
          .w = w,
          .centre = all.centre[j],
          // What passes is linear, and handed back as such: nothing of it is lost.
          .sigma = free            ? 0
                   : all.passes(j) ? w * all.scale[j]
                                   : x[at_.sigma[layer] + j],
          .kappa = free         ? 0
                   : layer > 0  ? kappa[j] * all.scale[j] * all.scale[j]
                   : one_kappa_ ? kappa[0]
                                : kappa[j],
          .origin = all.origin[j],
          .scale = all.scale[j],
          .low = all.low[j],
          .high = all.high[j]};
}

// Maxima of all units of a layer, with all multipliers given.
void TailDual::units(std::size_t layer, const Vector& x, Pass& pass) const {
  const Units& all = layers_[layer];
  Vector& y = pass.y[layer];
  Vector& deviation = pass.deviations[layer];
  for (std::size_t j = 0; j < all.size(); ++j) {
    ScalarProblem unit = problem(layer, j, x, pass.w[j]);
    if (layer + 1 < depth_) {
      unit.theta = pass.couplings[layer + 1].theta()[j];
      const CouplingPlace& above = at_.coupling[layer + 1];
      if (above.crosses) unit.cross = x[above.cross + j];
    }
    if (quadratic_of_u(layer, j))
      unit.kappa = all.scale[j] * (unit.theta * all.scale[j] - unit.cross);
    pass.sigma[layer][j] = unit.sigma;
    if (layer == 0 && !one_kappa_) pass.kappa[j] = unit.kappa;
    const double theta = std::abs(unit.theta), cross = std::abs(unit.cross);
    const double reach = all.reach(j);
    // An origin made of the values before is what sigma's balance with them starts from.
    const double of_origin = layer > 0 && unit.scale > 0 ? all.summed[j] / unit.scale : 0;
    const double spread = unit.phi.spread(unit.scale);
    const double apart = 1.2 * spread + std::abs(unit.phi(unit.origin) - unit.centre);
    const ScalarMaximum found =
        scalar_maximum(unit, pass.tolerance * (std::abs(unit.w) + theta * apart) * spread);
    pass.value.bound += found.value;
    // A rounding of phi is one of reach, not of the difference that is squared.
    pass.value.size += std::abs(found.value) +
                       (std::abs(unit.sigma) + std::abs(unit.kappa)) * (1 + of_origin) +
                       (pass.w_summed[j] + cross) * reach + theta * apart * (apart + reach);
    y[j] = found.y;
    deviation[j] = unit.phi(unit.origin + unit.scale * found.y) - unit.centre;
  }
}

// Whether the square of what passes is one of u, and handed back as such, too.
bool TailDual::quadratic_of_u(std::size_t layer, std::size_t j) const {
  return layer == 0 && !one_kappa_ && layers_[0].passes(j);
}

// What the multipliers took from the first units: a linear function of u.
Vector TailDual::taken(const Vector& sigma, const Vector& x) const {
  Vector g = rows_.transposed(sigma);
  if (set_.half) g.back() += x[at_.half];
  for (std::size_t i = 0; at_.sided && i < g.size(); ++i) g[i] += x[at_.side] * set_.side[i];
  return g;
}

Vector TailDual::taken(const Vector& x) const {
  return taken({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(layers_[0].size())}, x);
}

// What makes the values of units that pass: u, and the layers before.
void TailDual::follow(const Vector& y_of_u, Pass& pass) const {
  pass.made = pass.deviations;
  for (std::size_t l = 0; l < depth_; ++l) {
    const Units& all = layers_[l];
    for (std::size_t j = all.size() - all.kept; j < all.size(); ++j) {
      const double off = all.origin[j] - all.centre[j];
      if (l == 0) {
        pass.made[0][j] = off + all.scale[j] * y_of_u[j];
        if (!quadratic_of_u(0, j)) continue;
        pass.y[0][j] = y_of_u[j];
        pass.deviations[0][j] = pass.made[0][j];
      } else {
        const Vector& before = pass.made[l - 1];
        pass.made[l][j] =
            off + dot(&all.from.weight[j * before.size()], before.data(), before.size());
      }
    }
  }
}

// That function's maximum, and the quadratic's; the first units' y there.
Vector TailDual::inputs(const Vector& x, const Also& also, Pass& pass) const {
  const std::size_t kappa_at = at_.coupling[0].kappa;
  const double* kappa = one_kappa_ ? &x[kappa_at] : pass.kappa.data();
  Vector u = taken(pass.sigma[0], x), added;
  if (depth_ > 1) {
    const Coupling& coupling = pass.couplings[1];
    added = coupling.quadratic();
    for (std::size_t i = 0; i < coupling.linear().size(); ++i) u[i] += coupling.linear()[i];
  }
  if (at_.curved) {
    added.resize(set_.quadric.size());
    for (std::size_t i = 0; i < added.size(); ++i) added[i] += x[at_.quadric] * set_.quadric[i];
  }
  const double of_last = x[at_.half], last = of_last < 0 ? set_.last.high : set_.last.low;
  const double of_side = at_.sided ? x[at_.side] : 0, of_quadric = at_.curved ? x[at_.quadric] : 0;
  TailDual::Value value{0, std::abs(of_last) + of_side + of_quadric};
  if (image_) {
    const double* lambda = &x[at_.image];
    value = (*image_)(lambda, pass.tolerance, &pass.gradient[at_.image], also.price);
    for (std::size_t i = 0; i < u.size(); ++i) u[i] -= lambda[i];
    value.bound += over_inputs_.shell(kappa, u, added);
    for (std::size_t i = 0; i < u.size(); ++i) pass.gradient[at_.image + i] -= u[i];
  } else {
    u = over_inputs_.within_cone(kappa, u, added, also.alpha);
    value.bound = over_inputs_.shell(kappa, u, added);
  }
  pass.value.bound += value.bound - of_last * last + of_side * set_.beyond;
  pass.value.size += std::abs(value.bound) + value.size + std::abs(of_last) + of_side + of_quadric;
  const Vector y = rows_.of(u);
  follow(y, pass);
  for (std::size_t i = 0; i < y.size() && !set_.box; ++i) {
    const double of_unit = pass.y[0][i];
    if (!layers_[0].passes(i)) pass.gradient[i] += y[i] - of_unit;
    pass.gradient[kappa_at + (one_kappa_ ? 0 : i)] += y[i] * y[i] - of_unit * of_unit;
  }
  if (set_.half) pass.gradient[at_.half] = u.back() - last;
  if (at_.sided) pass.gradient[at_.side] = dot(u.data(), set_.side.data(), u.size()) + set_.beyond;
  for (std::size_t i = 0; at_.curved && i < u.size(); ++i)
    pass.gradient[at_.quadric] += u[i] * dot(&set_.quadric[i * u.size()], u.data(), u.size());
  for (std::size_t l = 1; l < depth_; ++l)
    pass.couplings[l].slope(layers_[l], at_.coupling[l],
                            {.y = pass.y[l],
                             .deviations = pass.deviations[l - 1],
                             .made = pass.made[l - 1],
                             .before = pass.y[l - 1],
                             .u = u,
                             .y_of_u = y},
                            pass.gradient);
  return y;
}

// The last layer's y where the first's are `y`.
Vector TailDual::last_units(Vector y) const {
  for (std::size_t l = 0; l + 1 < depth_; ++l) {
    const Units &all = layers_[l], &next = layers_[l + 1];
    Vector deviation;
    for (std::size_t j = 0; j < all.size(); ++j)
      deviation.push_back(all.phi(j)(all.origin[j] + all.scale[j] * y[j]) - all.centre[j]);
    y.assign(next.size(), 0);
    for (std::size_t j = 0; j < next.size(); ++j)
      if (next.scale[j] > 0)
        y[j] = dot(&next.from.weight[j * all.size()], deviation.data(), all.size()) / next.scale[j];
  }
  return y;
}

// What layer l's multipliers leave to the layer before: a weight of each value,
// sum_j sigma_j / scale_j weight_ji, less the coupling's shift.
void TailDual::hand_back(std::size_t l, const Vector& x, Pass& pass) const {
  const Units& all = layers_[l];
  const std::size_t inputs = layers_[l - 1].size();
  pass.w.assign(inputs, 0);
  pass.w_summed.assign(inputs, 0);
  for (std::size_t j = 0; j < all.size(); ++j) {
    if (!(all.scale[j] > 0)) continue;
    const double share = pass.sigma[l][j] / all.scale[j];
    for (std::size_t i = 0; i < inputs; ++i) {
      pass.w[i] += share * all.from.weight[j * inputs + i];
      pass.w_summed[i] += std::abs(share) * all.from_sizes[j * inputs + i];
    }
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    const double shift = x[at_.coupling[l].shift + i];
    pass.w[i] -= shift;
    pass.w_summed[i] += std::abs(shift);
  }
  pass.value.bound += pass.couplings[l].constant();
  pass.value.size += std::abs(pass.couplings[l].constant()) + pass.couplings[l].size();
}

// The slope in layer l's sigmas: how far its units are from what the layer before gives.
void TailDual::slope(std::size_t l, Pass& pass) const {
  const Units& all = layers_[l];
  const Vector& before = pass.made[l - 1];
  for (std::size_t j = 0; j < all.size() - all.kept; ++j) {
    if (!(all.scale[j] > 0)) continue;
    const double made = dot(&all.from.weight[j * before.size()], before.data(), before.size());
    pass.gradient[at_.sigma[l] + j] += made / all.scale[j] - pass.y[l][j];
  }
}

TailDual::Value TailDual::operator()(const Vector& v, double constant, const Vector& x,
                                     double tolerance, Vector& gradient, const Also& also) const {
  gradient.assign(at_.size, 0);
  std::vector<Coupling> own;
  Pass pass{{}, gradient, tolerance, also.couplings ? *also.couplings : own, v, v};
  pass.couplings.resize(depth_);
  for (std::size_t l = 1; l < depth_; ++l) {
    pass.couplings[l].move_to(layers_[l], rows_, at_.coupling[l], x);
    if (!pass.couplings[l].finite()) return {HUGE_VAL, HUGE_VAL};
  }
  for (double& part : pass.w_summed) part = std::abs(part);
  pass.value = {constant, std::abs(constant)};
  const Units& last = layers_[depth_ - 1];
  for (std::size_t j = 0; j < last.size(); ++j) pass.value.bound += v[j] * last.centre[j];
  for (std::size_t l = 0; l < depth_; ++l) {
    pass.y.emplace_back(layers_[l].size());
    pass.deviations.emplace_back(layers_[l].size());
    pass.sigma.emplace_back(layers_[l].size());
  }
  pass.kappa.resize(layers_[0].size());
  for (std::size_t l = depth_; l-- > 0;) {
    units(l, x, pass);
    if (l > 0) hand_back(l, x, pass);
  }
  Vector y = inputs(x, also, pass);
  for (std::size_t l = 1; l < depth_; ++l) slope(l, pass);
  if (also.gaps) {
    y = last_units(std::move(y));
    for (std::size_t j = 0; j < last.size(); ++j) {
      const ScalarProblem unit = problem(depth_ - 1, j, x, v[j]);
      y[j] = value_at(unit, pass.y.back()[j]) - value_at(unit, y[j]);
    }
    *also.gaps = std::move(y);
  }
  if (also.values) {
    *also.values = last.centre;
    for (std::size_t j = 0; j < last.size(); ++j) (*also.values)[j] += pass.deviations.back()[j];
  }
  return pass.value;
}

}  // namespace keel
