#include "box_net.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "box_maps.h"
#include "length.h"
#include "norm_span.h"
#include "tail_start.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

Vector transposed(const Vector& matrix, std::size_t rows, std::size_t cols) {
  Vector result(matrix.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) result[j * rows + i] = matrix[i * cols + j];
  return result;
}

// Not where a residual would have to add what has been divided to what has not.
bool may_divide_last(const Spec& spec) {
  std::int64_t within = 0;
  bool divides = false;
  for (const LayerSpec& word : spec) {
    within += (word.kind == LayerKind::residual) - (word.kind == LayerKind::add);
    if (!normalises_rows(word.kind)) continue;
    if (divides && within > 0) return false;
    divides = divides || within == 0;
  }
  return true;
}

class Building {
 public:
  Building(const Net& net, bool homogeneous, bool spherical = false)
      : net_(net),
        of_last_(homogeneous),
        spherical_(spherical),
        divides_last_(may_divide_last(net.spec())) {
    result_.homogeneous = homogeneous;
    result_.inputs = static_cast<std::size_t>(net.input_width()) + homogeneous;
    width_ = net.input_width();
  }

  BoxNet build() {
    const Spec& spec = net_.spec();
    for (std::size_t i = 0; i < spec.size(); ++i) {
      if (spec[i].kind == LayerKind::dense)
        dense(i);
      else if (normalises_rows(spec[i].kind))
        norm(i);
      else if (spec[i].kind == LayerKind::residual)
        keep();
      else if (spec[i].kind == LayerKind::add)
        add();
      else
        activation(i);
    }
    end_map();
    result_.outputs = static_cast<std::size_t>(width_);
    return std::move(result_);
  }

 private:
  // t goes on until a norm takes what is given.
  void dense(std::size_t layer) {
    Affine map = dense_affine(net_, layer);
    width_ = map.outputs;
    if (of_last_) map = with_bias_of_last(map, !norm_is_next(layer));
    if (spherical_ && layer == 0 && norm_is_next(layer)) {
      as_given_ = map;
      const Affine change = spherical_change(map, net_.spec()[1].kind == LayerKind::layernorm);
      result_.change = change.weight;
      map = composed(map, change);
    }
    map_ = map_ ? composed(map, *map_) : std::move(map);
  }

  bool norm_is_next(std::size_t layer) const {
    return layer + 1 < net_.spec().size() && normalises_rows(net_.spec()[layer + 1].kind);
  }

  void activation(std::size_t layer) {
    BoxUnits step{units(), activation_of(net_, layer)};
    if (of_last_) {
      of_last_ = result_.divides() || !bounds_units(net_.spec()[layer].kind);
      step.scale = of_last_ ? UnitScale::perspective : UnitScale::quotient;
    }
    push(std::move(step));
  }

  void keep() {
    kept_of_last_.push_back(of_last_);
    push(BoxKeep{});
  }

  void add() {
    const bool kept = kept_of_last_.back();
    kept_of_last_.pop_back();
    push(BoxAdd{.last_stays = kept, .times_last = kept && !of_last_});
    result_.products += kept && !of_last_;
    of_last_ = kept;
  }

  void norm(std::size_t layer) {
    const LayerSpec& word = net_.spec()[layer];
    const bool centres = word.kind == LayerKind::layernorm;
    BoxNorm norm{units(), word.eps, of_last_, Vector(units(), 1), Vector(units())};
    if (word.affine) {
      norm.gain = net_.values(net_.first_parameter(layer));
      if (centres) norm.bias = net_.values(net_.first_parameter(layer) + 1);
    }
    norm.most = most_of(word.eps, centres);
    if (of_last_ && !map_) map_ = with_bias_of_last(identity_map(width_), false);
    if (centres) map_ = centred(map_ ? std::move(*map_) : identity_map(width_));
    as_given_.reset();
    if (divides_last_ && kept_of_last_.empty()) {
      if (of_last_) map_ = beside_last(*map_);
      push(BoxDivisor{std::move(norm)});
      of_last_ = true;
      ++result_.divisors;
      return;
    }
    of_last_ = false;
    push(std::move(norm));
    ++result_.norms;
  }

  // Of each unit of a norm: what is in a few dimensions only is no longer than its part of them.
  // What was multiplied out may have lost the digits that tell which.
  Vector most_of(double eps, bool centres) const {
    const auto width = static_cast<double>(width_);
    Vector most(units(), std::sqrt(width - (centres && width_ > 1)));
    const std::optional<Affine>& map = as_given_ ? as_given_ : map_;
    if (!map || !map->weight_sizes.empty()) return most;
    const NormSet set = span_of(*map, eps, centres);
    if (set.whole) return most;
    const auto rank = static_cast<std::size_t>(set.rank);
    for (std::size_t i = 0; i < most.size(); ++i) {
      const double own = length_of(&set.basis[i * rank], rank) + set.turned + kOfSpan;
      most[i] = std::min(most[i], std::sqrt(width) * own);
    }
    return most;
  }

  NormSet span_of(const Affine& map, double eps, bool centres) const {
    if (!of_last_) return norm_span(map.weight, map.bias, map.inputs, eps, centres).set;
    const auto rows = static_cast<std::size_t>(map.outputs),
               cols = static_cast<std::size_t>(map.inputs);
    Vector weight, bias;
    for (std::size_t i = 0; i < rows; ++i) {
      weight.insert(weight.end(), &map.weight[i * cols], &map.weight[i * cols] + cols - 1);
      bias.push_back(map.weight[i * cols + cols - 1]);
    }
    return norm_span(weight, bias, map.inputs - 1, eps, centres).set;
  }

  std::size_t units() const { return static_cast<std::size_t>(width_); }

  void end_map() {
    if (map_) result_.steps.emplace_back(BoxMap(*map_));
    map_.reset();
  }

  void push(BoxStep step) {
    end_map();
    result_.steps.push_back(std::move(step));
  }

  const Net& net_;
  BoxNet result_;
  bool of_last_;  // t is still the last value
  std::vector<bool> kept_of_last_{};
  std::int64_t width_ = 0;
  bool spherical_, divides_last_;
  std::optional<Affine> map_{};       // what is not yet a step
  std::optional<Affine> as_given_{};  // that, ahead of a change of variables
};

// phi(z / t), or t phi(z / t); where z / t is no number of double, its limit.
double scaled_at(const Activation& phi, UnitScale scale, double z, double t) {
  const double u = z == 0 ? 0 : z / t;
  if (scale == UnitScale::quotient) return phi(u);
  return std::isinf(u) ? phi.above * std::max(z, 0.0) : t * phi(u);
}

// What a norm puts out of c; its bias where there is nothing to divide.
void divide(const BoxNorm& norm, Vector& c, double t) {
  double square = norm.eps * (t * t);
  for (double value : c) square += value * value / static_cast<double>(c.size());
  const double over = square > 0 ? 1 / std::sqrt(square) : 0;
  for (std::size_t j = 0; j < c.size(); ++j) c[j] = c[j] * over * norm.gain[j] + norm.bias[j];
}

// What is behind takes (x, r) to multiples of one length all alike: so r is 1 here, and x what the
// norm puts out, which where r is 0 is its bias. Values are divided by the largest of them first,
// so that squares stay within double.
void keep_divisor(const BoxNorm& norm, Vector& x) {
  double t = norm.eps_of_last ? x.back() : 1;
  x.resize(norm.units);
  double largest = std::abs(t) * std::sqrt(norm.eps);
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (largest > 0) {
    for (double& value : x) value /= largest;
    t /= largest;
  }
  divide(norm, x, t);
  x.push_back(1);
}

}  // namespace

BoxMap::BoxMap(const Affine& map)
    : inputs(static_cast<std::size_t>(map.inputs)),
      outputs(static_cast<std::size_t>(map.outputs)),
      weight(map.weight),
      columns(transposed(map.weight, outputs, inputs)),
      column_sizes(columns),
      bias(map.bias),
      bias_sizes(keel::bias_sizes(map)) {
  for (double& size : column_sizes) size = std::abs(size);
  if (!map.weight_sizes.empty()) rounded_sizes = transposed(map.weight_sizes, outputs, inputs);
}

double BoxNet::work() const {
  constexpr double kOfCurve = 1000;  // a unit's two lines, where they are looked for
  const double forms = static_cast<double>(variables()) + 8;
  double sum = 0;
  for (const BoxStep& step : steps) {
    if (const auto* map = std::get_if<BoxMap>(&step))
      sum += forms * static_cast<double>(map->weight.size());
    if (const auto* units = std::get_if<BoxUnits>(&step))
      sum += static_cast<double>(units->units) * (units->phi.kinked() ? forms : kOfCurve);
    const auto* divisor = std::get_if<BoxDivisor>(&step);
    if (const auto* norm = divisor ? &divisor->norm : std::get_if<BoxNorm>(&step))
      sum += static_cast<double>(norm->units) * forms * forms;
  }
  return sum;
}

BoxNet box_net(const Net& net) { return Building(net, false).build(); }

BoxNet homogeneous_box_net(const Net& net, bool spherical) {
  return Building(net, true, spherical).build();
}

void add_product(const Vector& columns, std::size_t inputs, const double* x, double* out) {
  constexpr std::size_t kAtOnce = 4;  // columns for each time that out is loaded and stored
  const std::size_t outputs = columns.size() / inputs;
  std::size_t j = 0;
  for (; j + kAtOnce <= inputs; j += kAtOnce) {
    const double *a = &columns[j * outputs], *b = a + outputs, *c = b + outputs, *d = c + outputs;
    const double of_a = x[j], of_b = x[j + 1], of_c = x[j + 2], of_d = x[j + 3];
    for (std::size_t i = 0; i < outputs; ++i)
      out[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i]);
  }
  for (; j < inputs; ++j)
    for (std::size_t i = 0; i < outputs; ++i) out[i] += x[j] * columns[j * outputs + i];
}

Vector box_net_at(const BoxNet& net, Vector x) {
  double last = x.back();
  std::vector<Vector> kept;
  for (const BoxStep& step : net.steps) {
    if (const auto* map = std::get_if<BoxMap>(&step)) {
      Vector out = map->bias;
      add_product(map->columns, map->inputs, x.data(), out.data());
      x = std::move(out);
    } else if (const auto* units = std::get_if<BoxUnits>(&step)) {
      const bool scaled = units->scale != UnitScale::one;
      if (units->scale == UnitScale::quotient) x.pop_back();
      for (std::size_t j = 0; j < units->units; ++j) {
        const Activation phi = units->phi.of(j);
        const bool keeps = !scaled || phi.kinked();  // a factor
        x[j] = keeps ? phi(x[j]) : scaled_at(phi, units->scale, x[j], last);
      }
    } else if (const auto* norm = std::get_if<BoxNorm>(&step)) {
      divide(*norm, x, norm->eps_of_last ? last : 1);
    } else if (const auto* of = std::get_if<BoxDivisor>(&step)) {
      keep_divisor(of->norm, x);
      last = x.back();
    } else if (std::holds_alternative<BoxKeep>(step)) {
      kept.push_back(x);
    } else {
      const auto& add = std::get<BoxAdd>(step);
      const std::size_t units = kept.back().size() - add.last_stays;
      for (std::size_t j = 0; j < units; ++j) kept.back()[j] += x[j] * (add.times_last ? last : 1);
      x = std::move(kept.back());
      kept.pop_back();
    }
  }
  if (!net.divides()) return x;
  x.pop_back();
  for (double& value : x) value = value == 0 ? 0 : value / last;
  return x;
}

}  // namespace keel
