#include "tail_start.h"

#include <algorithm>
#include <cmath>

#include "length.h"
#include "norm_after.h"
#include "norm_image.h"

namespace keel {

using Vector = std::vector<double>;

Affine dense_affine(const Net& net, std::size_t layer) {
  const std::size_t p = net.first_parameter(layer);
  Affine affine{0, 0, net.values(p), net.values(p + 1)};
  affine.outputs = static_cast<std::int64_t>(affine.bias.size());
  affine.inputs = static_cast<std::int64_t>(affine.weight.size()) / affine.outputs;
  return affine;
}

LayerActivation activation_of(const Net& net, std::size_t layer) {
  if (net.spec()[layer].kind != LayerKind::prelu) return Activation(net.spec()[layer]);
  return LayerActivation(net.values(net.first_parameter(layer)));
}

void check_large_enough(bool is, const char* what) {
  check(is, "net_bound", "got {} so small that their products leave double, wanted larger ones",
        what);
}

namespace {

// A vector of B may be out of its span, all of it in one unit: the margin is to cover that.
constexpr double kLeast = kOfSpan / kMargin;

// h = sqrt(width) B u, then gain and bias.
Affine normed_affine(const NormSet& set, const Vector& gain, const Vector& bias) {
  const auto width = static_cast<std::size_t>(set.width), rank = static_cast<std::size_t>(set.rank);
  Affine affine{set.width, set.rank, set.basis, bias};
  if (set.whole) {
    affine.weight.assign(width * width, set.centred ? -1 / static_cast<double>(width) : 0);
    for (std::size_t i = 0; i < width; ++i) affine.weight[i * width + i] += 1;
  }
  affine.bias_sizes = bias_sizes(affine);
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < rank; ++j) {
      const double scale = std::sqrt(static_cast<double>(width)) * gain[i];
      const double part = affine.weight[i * rank + j];
      affine.weight[i * rank + j] = scale * part;
      affine.weight_sizes.push_back(std::abs(scale) *
                                    std::max(std::abs(part), set.whole ? 0 : kLeast));
    }
  return affine;
}

// Of the layer at `layer`, if that is an activation.
std::optional<LayerActivation> activation_at(const Net& net, std::size_t layer) {
  switch (net.spec()[layer].kind) {
    case LayerKind::dense:
    case LayerKind::layernorm:
    case LayerKind::rmsnorm:
    case LayerKind::batchnorm:
    case LayerKind::residual:
    case LayerKind::add:
      return std::nullopt;
    default:
      return activation_of(net, layer);
  }
}

// The width of what the layers before `layer` give.
std::int64_t width_before(const Net& net, std::size_t layer) {
  std::int64_t width = net.input_width();
  for (std::size_t i = 0; i < layer; ++i)
    if (net.spec()[i].kind == LayerKind::dense) width = net.spec()[i].width;
  return width;
}

// The norm at `norm`, with its gain and bias, of a set.
Affine affine_of(const Net& net, std::size_t norm, const NormSet& set) {
  const auto units = static_cast<std::size_t>(set.width);
  if (!net.spec()[norm].affine) return normed_affine(set, Vector(units, 1.0), Vector(units, 0.0));
  const std::size_t first = net.first_parameter(norm);
  return normed_affine(set, net.values(first),
                       set.centred ? net.values(first + 1) : Vector(units, 0.0));
}

NormSet set_of(const Net& net, std::size_t norm, bool narrow = true) {
  const Spec& spec = net.spec();
  const bool centred = spec[norm].kind == LayerKind::layernorm;
  if (narrow && norm > 0 && spec[norm - 1].kind == LayerKind::dense) {
    const Affine before = dense_affine(net, norm - 1);
    const std::optional<LayerActivation> phi =
        norm > 1 ? activation_at(net, norm - 2) : std::nullopt;
    NormSet set = normed_after_dense(
        before.weight, before.bias, before.inputs, spec[norm].eps,
        phi ? std::optional<double>(phi->least().value_or(0)) : std::nullopt, centred);
    if (phi && !phi->least()) set.cone = {};  // its generators serve the image
    return set;
  }
  return every_normed(width_before(net, norm), centred);
}

struct Before {
  Tail tail{};
  bool of_any = false;  // of whatever input there is; else of a norm's output
};

// What stands before the dense layer at `dense`: an activation, and before that one map of a norm's
// output, or of anything. Nothing where that is of many variables.
std::optional<Before> before_dense(const Net& net, std::size_t dense, const NormSet& set) {
  constexpr std::int64_t kMostVariables = 32;
  const Spec& spec = net.spec();
  const LayerActivation phi = activation_of(net, dense - 1);
  std::size_t from = dense - 1;  // the first of the layers that are one map
  std::vector<Affine> maps;      // the last first
  for (; from > 0 && spec[from - 1].kind == LayerKind::dense; --from)
    maps.push_back(dense_affine(net, from - 1));
  bool large = true;
  const auto all_after = [&](Affine map) {
    large = large_enough(map);
    for (; !maps.empty(); maps.pop_back()) {
      Affine made = composed(maps.back(), map);
      large = large && large_enough(made, maps.back(), map);
      map = std::move(made);
    }
    return map;
  };
  if (from == 0 || !normalises_rows(spec[from - 1].kind)) {
    const Activation one = phi.of(0);
    if (!one.beside_relu() || maps.empty() || maps.back().inputs >= kMostVariables)
      return std::nullopt;
    Affine first = std::move(maps.back());
    maps.pop_back();
    const Affine map = all_after(std::move(first));
    if (!large || cancels(map)) return std::nullopt;
    // phi(z) is relu(above z), but for what beside_relu() tells of.
    std::optional<Tail> any =
        homogeneous(scaled(map, one.above), set.generators, phi.kinked() ? phi : LayerKind::relu);
    if (!any) return std::nullopt;
    return Before{std::move(*any), true};
  }
  Tail before;
  before.set = set_of(net, from - 1);
  if (before.set.rank > kMostVariables) return std::nullopt;
  before.direct = maps.empty();
  before.affine.push_back(all_after(affine_of(net, from - 1, before.set)));
  before.push_back(phi);
  if (!large) return std::nullopt;
  return Before{std::move(before)};
}

std::shared_ptr<const NormImage> image_of(const Net& net, std::size_t norm, const NormSet& set) {
  std::optional<Before> before = before_dense(net, norm - 1, set);
  if (!before) return nullptr;
  Cone cone = set.cone.empty() ? Cone(set.generators, set.rank) : set.cone;
  if (cone.empty()) return nullptr;
  const Activation phi = activation_of(net, norm - 2).of(0);
  const Interval beside = before->of_any ? *phi.beside_relu() : Interval{};
  auto image = std::make_shared<const NormImage>(std::move(before->tail), set.generators,
                                                 std::move(cone), beside);
  return image->bounded() ? image : nullptr;
}

void begin_with_norm(Tail& tail, const Net& net, std::size_t norm) {
  tail.affine.push_back(affine_of(net, norm, tail.set));
  check_large_enough(large_enough(tail.affine[0]));
}

}  // namespace

Tail tail_from(const Net& net, std::size_t layer, bool narrow) {
  const Spec& spec = net.spec();
  Tail tail;
  tail.word = word_of(spec, layer);
  tail.kind = spec[layer].kind;
  if (!normalises_rows(tail.kind)) {
    tail.set = every_of_units(width_before(net, layer), tail.kind);
    const double middle = 0.5 * (tail.set.ends.low + tail.set.ends.high);
    tail.affine.push_back(
        {tail.set.width, 0, {}, Vector(static_cast<std::size_t>(tail.set.width), middle)});
    tail.push_back(Activation::identity());
    return tail;
  }
  tail.set = set_of(net, layer, narrow);
  if (!tail.set.generators.empty()) tail.set.image = image_of(net, layer, tail.set);
  begin_with_norm(tail, net, layer);
  return tail;
}

Tail tail_of_inputs(const Net& net, double within) {
  check(within > 0 && std::isfinite(within), "net_bound",
        "got |x| within {}, wanted a number above 0", within);
  const std::int64_t features = net.input_width();
  Tail tail;
  tail.set = every_normed(features, false);
  tail.affine.push_back(identity_map(features));
  for (double& weight : tail.affine[0].weight) weight *= within;
  check_large_enough(large_enough(tail.affine[0]), "weights and a region of |x|");
  return tail;
}

namespace {

// Middles and half lengths, times `factor`: of what is 1 at most the ranges.
Affine of_ranges(const std::vector<Interval>& ranges, double factor) {
  Affine map = identity_map(std::ssize(ranges));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const double middle = ranges[i].low + 0.5 * (ranges[i].high - ranges[i].low);
    map.bias[i] = middle;
    map.weight[i * ranges.size() + i] =
        factor * std::max(ranges[i].high - middle, middle - ranges[i].low);
  }
  check_large_enough(large_enough(map), "weights and ranges");
  return map;
}

}  // namespace

Tail tail_of_ranges(const std::vector<Interval>& ranges) {
  Tail tail;
  tail.set = every_of_units(std::ssize(ranges), LayerKind::tanh);
  tail.affine = {{tail.set.width, 0, {}, Vector(ranges.size())}};
  tail.push_back(Activation::identity());
  tail.affine.push_back(of_ranges(ranges, 1));
  return tail;
}

Tail tail_around_ranges(const std::vector<Interval>& ranges) {
  Tail tail;
  tail.set = every_normed(std::ssize(ranges), false);
  tail.affine = {of_ranges(ranges, std::sqrt(static_cast<double>(ranges.size())))};
  return tail;
}

Tail tail_after(const Net& net, std::size_t layer, const Tail& given) {
  const LayerSpec& norm = net.spec()[layer];
  std::int64_t widest = net.input_width();
  for (const LayerSpec& each : net.spec()) widest = std::max(widest, each.width);
  // Some ten times what sums of so many products lose; and what normed_affine() has put into sizes.
  const double lost = 1e-15 * static_cast<double>(widest) + given.set.turned / kLeast;
  Tail tail;
  tail.word = word_of(net.spec(), layer);
  tail.kind = norm.kind;
  tail.set =
      normed_after(given.affine[0], given.set, lost, norm.eps, norm.kind == LayerKind::layernorm);
  begin_with_norm(tail, net, layer);
  return tail;
}

}  // namespace keel
