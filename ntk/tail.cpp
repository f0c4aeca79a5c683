#include "tail.h"

#include <algorithm>
#include <cmath>

#include "first_units.h"
#include "length.h"
#include "norm_image.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// The dense layer at `layer`, as it multiplies and adds.
Affine dense_affine(const Net& net, std::size_t layer) {
  const std::size_t p = net.first_parameter(layer);
  Affine affine{0, 0, net.values(p), net.values(p + 1)};
  affine.outputs = static_cast<std::int64_t>(affine.bias.size());
  affine.inputs = static_cast<std::int64_t>(affine.weight.size()) / affine.outputs;
  return affine;
}

void check_large_enough(bool is) {
  check(is, "net_bound",
        "got weights so small that their products leave double, wanted larger ones");
}

// h = sqrt(width) B u, then gain and bias.
Affine normed_affine(const NormSet& set, const Vector& gain, const Vector& bias) {
  const auto width = static_cast<std::size_t>(set.width), rank = static_cast<std::size_t>(set.rank);
  Affine affine{set.width, set.rank, set.basis, bias};
  if (set.whole) {
    affine.weight.assign(width * width, set.centred ? -1 / static_cast<double>(width) : 0);
    for (std::size_t i = 0; i < width; ++i) affine.weight[i * width + i] += 1;
  }
  // A vector of B may be out of its span, all of it in one unit: the margin is to cover that.
  constexpr double kLeast = kOfSpan / kMargin;
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

// Index of the last layernorm or rmsnorm, or else of the first tanh or sigmoid; the SPEC's length
// where there is none. What is within a residual does not count, as x passes it by; nor what is
// ahead of a norm there, of which a tail has none.
std::size_t bounding_word(const Spec& spec) {
  std::size_t norm = spec.size(), units = spec.size();
  bool within = false;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (joins(spec[i].kind)) within = spec[i].kind == LayerKind::residual;
    if (within && normalises_rows(spec[i].kind)) norm = units = spec.size();
    if (within) continue;
    if (normalises_rows(spec[i].kind)) norm = i;
    if (bounds_units(spec[i].kind)) units = std::min(units, i);
  }
  return norm < spec.size() ? norm : units;
}

// Of the layer at `layer`, if that is an activation.
std::optional<Activation> activation_at(const Spec& spec, std::size_t layer) {
  switch (spec[layer].kind) {
    case LayerKind::dense:
    case LayerKind::layernorm:
    case LayerKind::rmsnorm:
    case LayerKind::batchnorm:
    case LayerKind::residual:
    case LayerKind::add:
      return std::nullopt;
    default:
      return spec[layer];
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
    const std::optional<Activation> phi = norm > 1 ? activation_at(spec, norm - 2) : std::nullopt;
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
  const Activation phi = spec[dense - 1];
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
    if (!phi.beside_relu() || maps.empty() || maps.back().inputs >= kMostVariables)
      return std::nullopt;
    Affine first = std::move(maps.back());
    maps.pop_back();
    const Affine map = all_after(std::move(first));
    if (!large || cancels(map)) return std::nullopt;
    std::optional<Tail> any = homogeneous(map, set.generators, phi.kinked() ? phi.slope : 0);
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
  const Activation phi = net.spec()[norm - 2];
  const Interval beside = before->of_any ? *phi.beside_relu() : Interval{};
  auto image = std::make_shared<const NormImage>(std::move(before->tail), set.generators,
                                                 std::move(cone), beside);
  return image->bounded() ? image : nullptr;
}

// Puts the words behind the norm, tanh or sigmoid, into a tail. Within a residual all values are
// followed by those of x, which is to be added at its end.
class Behind {
 public:
  Behind(Tail& tail, bool open) : tail_(tail), width_(tail.set.width), open_(open) {}

  void dense(const Affine& next) {
    push(beside_identity(next, kept_));
    width_ = next.outputs;
  }

  void residual() {
    push(identities(2, 1, width_));
    kept_ = width_;
  }

  void add() {
    push(identities(1, 2, width_));
    kept_ = 0;
  }

  void activation(const Activation& phi) {
    end();
    tail_.push_back(phi, static_cast<std::size_t>(kept_));
    open_ = false;
  }

  void end() {
    if (!open_) push(identity_map(width_ + kept_));
  }

 private:
  void push(Affine next) {
    if (open_) {
      Affine made = composed(next, tail_.affine.back());
      check_large_enough(large_enough(made, next, tail_.affine.back()));
      tail_.affine.back() = std::move(made);
    } else {
      tail_.affine.push_back(std::move(next));
    }
    open_ = true;
  }

  Tail& tail_;
  std::int64_t width_, kept_ = 0;
  bool open_;  // the last affine map may still take in another
};

}  // namespace

bool has_bound(const Spec& spec) { return bounding_word(spec) < spec.size(); }

const char* outside_residuals(const Spec& spec) {
  return has_residual(spec) ? " that no residual passes by, behind all norms within residuals" : "";
}

Tail tail_of(const Net& net, bool narrow) {
  check(net.members() == 1, "net_bound", "got a net of {} members, wanted one: Net::member",
        net.members());
  const Spec& spec = net.spec();
  const std::size_t begin = bounding_word(spec);
  check(begin < spec.size(), "net_bound",
        "got '{}', wanted a layernorm, an rmsnorm, a tanh or a sigmoid{}", spec_text(spec),
        outside_residuals(spec));

  Tail tail;
  tail.word = word_of(spec, begin);
  tail.kind = spec[begin].kind;
  const bool of_norm = normalises_rows(spec[begin].kind);
  tail.set =
      of_norm ? set_of(net, begin, narrow) : every_of_units(width_before(net, begin), tail.kind);
  if (!tail.set.generators.empty()) tail.set.image = image_of(net, begin, tail.set);
  if (of_norm) {
    tail.affine.push_back(affine_of(net, begin, tail.set));
    check_large_enough(large_enough(tail.affine[0]));
  } else {
    const std::int64_t width = tail.set.width;
    const Interval& ends = tail.set.ends;
    tail.affine.push_back(
        {width, 0, {}, Vector(static_cast<std::size_t>(width), 0.5 * (ends.low + ends.high))});
    tail.push_back(Activation::identity());
  }
  Behind behind(tail, of_norm);
  for (std::size_t i = begin + 1; i < spec.size(); ++i) {
    switch (spec[i].kind) {
      case LayerKind::dense:
        behind.dense(dense_affine(net, i));
        break;
      case LayerKind::residual:
        behind.residual();
        break;
      case LayerKind::add:
        behind.add();
        break;
      default:
        if (tail.activations.empty()) tail.direct = i == begin + 1;
        behind.activation(spec[i]);
    }
  }
  behind.end();
  return tail;
}

Vector tail_at(const Tail& tail, const Vector& u) {
  Vector value = tail.set.box ? u : affine_at(tail.affine[0], u);
  for (std::size_t l = 0; l < tail.activations.size(); ++l) {
    for (std::size_t j = 0; j + tail.kept[l] < value.size(); ++j)
      value[j] = tail.activations[l](value[j]);
    value = affine_at(tail.affine[l + 1], value);
  }
  return value;
}

}  // namespace keel
