#include "tail.h"

#include <algorithm>
#include <cmath>

#include "scalar_maximum.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Parameter p of the net, times its scale, as the layer uses it.
Vector parameter(const Net& net, std::size_t p) {
  Vector values = net.layout().member_view(net.flat().to(Device::cpu()), p, 0).to_vector<double>();
  for (double& value : values) value *= net.layout().entries()[p].scale;
  return values;
}

Affine dense_affine(const Net& net, std::size_t p) {
  Affine affine{0, 0, parameter(net, p), parameter(net, p + 1)};
  affine.outputs = static_cast<std::int64_t>(affine.bias.size());
  affine.inputs = static_cast<std::int64_t>(affine.weight.size()) / affine.outputs;
  return affine;
}

Affine identity(std::int64_t width) {
  Affine affine{width, width, Vector(static_cast<std::size_t>(width * width)),
                Vector(static_cast<std::size_t>(width))};
  for (std::int64_t i = 0; i < width; ++i)
    affine.weight[static_cast<std::size_t>(i * width + i)] = 1;
  return affine;
}

// `second` after `first`.
Affine composed(const Affine& second, const Affine& first) {
  Affine result{second.outputs, first.inputs,
                Vector(static_cast<std::size_t>(second.outputs * first.inputs)),
                affine_at(second, first.bias)};
  const auto cols = static_cast<std::size_t>(first.inputs),
             inner = static_cast<std::size_t>(first.outputs);
  for (std::size_t i = 0; i < result.bias.size(); ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < cols; ++j)
        result.weight[i * cols + j] += second.weight[i * inner + k] * first.weight[k * cols + j];
  return result;
}

// h = sqrt(width) B u, then gain and bias.
Affine normed_affine(const NormSet& set, const Vector& gain, const Vector& bias) {
  const auto width = static_cast<std::size_t>(set.width), rank = static_cast<std::size_t>(set.rank);
  Affine affine{set.width, set.rank, set.basis, bias};
  if (set.whole) {
    affine.weight.assign(width * width, -1 / static_cast<double>(width));
    for (std::size_t i = 0; i < width; ++i) affine.weight[i * width + i] += 1;
  }
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < rank; ++j)
      affine.weight[i * rank + j] *= std::sqrt(static_cast<double>(width)) * gain[i];
  return affine;
}

// Index of the last Layer Norm; the SPEC's length where there is none.
std::size_t last_norm(const Spec& spec) {
  for (std::size_t i = spec.size(); i-- > 0;)
    if (spec[i].kind == LayerKind::layernorm) return i;
  return spec.size();
}

// The first parameter of each layer.
std::vector<std::size_t> first_parameters(const Spec& spec) {
  std::vector<std::size_t> first;
  std::size_t next = 0;
  for (const LayerSpec& layer : spec) {
    first.push_back(next);
    if (layer.kind == LayerKind::dense || (layer.kind == LayerKind::layernorm && layer.affine))
      next += 2;
  }
  return first;
}

}  // namespace

bool has_layer_norm(const Spec& spec) { return last_norm(spec) < spec.size(); }

Vector affine_at(const Affine& affine, const Vector& x) {
  Vector result = affine.bias;
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) result[i] += affine.weight[i * x.size() + j] * x[j];
  return result;
}

Tail tail_of(const Net& net, bool narrow) {
  check(net.members() == 1, "net_bound", "got a net of {} members, wanted one: Net::member",
        net.members());
  const Spec& spec = net.spec();
  const std::size_t norm = last_norm(spec);
  check(norm < spec.size(), "net_bound", "got '{}', wanted a net with a layernorm",
        spec_text(spec));
  const std::vector<std::size_t> first = first_parameters(spec);
  std::int64_t width = net.input_width();
  for (std::size_t i = 0; i < norm; ++i)
    if (spec[i].kind == LayerKind::dense) width = spec[i].width;

  Tail tail;
  tail.word = static_cast<std::int64_t>(norm) + 1;
  tail.set = every_normed(width);
  if (narrow && norm > 0 && spec[norm - 1].kind == LayerKind::dense) {
    const Affine before = dense_affine(net, first[norm - 1]);
    tail.set = normed_after_dense(before.weight, before.bias, before.inputs, spec[norm].eps);
  }
  const auto units = static_cast<std::size_t>(width);
  const Vector gain = spec[norm].affine ? parameter(net, first[norm]) : Vector(units, 1.0);
  const Vector bias = spec[norm].affine ? parameter(net, first[norm] + 1) : Vector(units, 0.0);
  tail.affine.push_back(normed_affine(tail.set, gain, bias));
  bool open = true;  // the last affine map may still take in a dense layer
  for (std::size_t i = norm + 1; i < spec.size(); ++i) {
    if (spec[i].kind == LayerKind::dense) {
      const Affine next = dense_affine(net, first[i]);
      if (open)
        tail.affine.back() = composed(next, tail.affine.back());
      else
        tail.affine.push_back(next);
      open = true;
      continue;
    }
    if (!open) tail.affine.push_back(identity(width));
    if (tail.activations.empty()) tail.direct = i == norm + 1;
    tail.activations.push_back(spec[i].kind);
    width = tail.affine.back().outputs;
    open = false;
  }
  if (!open) tail.affine.push_back(identity(width));
  return tail;
}

Vector tail_at(const Tail& tail, const Vector& u) {
  Vector value = affine_at(tail.affine[0], u);
  for (std::size_t l = 0; l < tail.activations.size(); ++l) {
    for (double& z : value) z = activation(tail.activations[l], z);
    value = affine_at(tail.affine[l + 1], value);
  }
  return value;
}

}  // namespace keel
