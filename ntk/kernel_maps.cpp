#include "kernel_maps.h"

#include <algorithm>
#include <utility>

#include "../nn/layer.h"

namespace keel {
namespace {

constexpr double kLargest = 1e150;  // of a diagonal: products of two must not overflow

// What a residual is given and what it makes of it are independent: behind its last weights, which
// are its own, of mean 0, there are norms alone. So their K and Theta add up. Gains that still wait
// for an average over units get it here, each of its own values.
KernelMap add_map(const Spec& spec, std::size_t layer, const KernelContext& kept,
                  KernelContext& context) {
  std::size_t last = layer - 1;  // but for norms
  while (normalises_rows(spec[last].kind)) --last;
  check(spec[last].kind == LayerKind::dense, "infinite_kernel",
        "got a residual that ends at word {}, wanted a dense layer at its end, or one ahead of "
        "norms alone",
        word_of(spec, layer));
  KernelMap map;
  map.kind = KernelMap::Kind::add;
  map.gain = kept.gain;
  map.from_k = context.gain;
  context.gaussian = kept.gaussian;
  context.offset = context.offset || kept.offset;
  context.averaged = context.averaged || kept.averaged || kept.gain > 0 || context.gain > 0;
  context.gain = 0;
  return map;
}

}  // namespace

std::vector<KernelMap> kernel_maps(const Spec& spec, std::int64_t input_width,
                                   const InfiniteKernelOptions& options) {
  // What comes first is of the data, not of a Gaussian: a kernel for it would be another net's.
  check(!spec.empty() && spec.front().kind == LayerKind::dense &&
            spec.back().kind == LayerKind::dense,
        "infinite_kernel", "got '{}', wanted a net that begins and ends with dense(k)",
        spec_text(spec));
  check<ShapeError>(input_width >= 1, "infinite_kernel", "got input width {}, wanted at least 1",
                    input_width);
  check_residuals(spec);
  std::vector<KernelMap> maps;
  KernelContext context, kept;
  context.width = input_width;
  bool first_dense = true;
  for (const LayerSpec& layer : spec) {
    context.word += layer.identities + (layer.kind == LayerKind::add ? 0 : 1);
    if (layer.kind == LayerKind::residual) {
      kept = context;
      maps.push_back({.kind = KernelMap::Kind::keep});
      continue;
    }
    if (layer.kind == LayerKind::add) {
      maps.push_back(add_map(spec, maps.size(), kept, context));
      continue;
    }
    DenseInit init{options.parameterisation, options.sigma_w2, options.sigma_b2};
    if (layer.kind == LayerKind::dense && std::exchange(first_dense, false))
      init.sigma_w2 = options.first_sigma_w2.value_or(options.sigma_w2);
    maps.push_back(make_layer(layer, init)->kernel_map(context));
  }
  // A constant that a Layer Norm takes away again: of small inputs little else would be left of K.
  for (std::size_t i = 0; i + 1 < maps.size(); ++i) {
    const KernelMap& next = maps[i + 1];
    if (maps[i].form == Form::distribution && next.kind == KernelMap::Kind::layer_norm &&
        next.centred != 0 && next.gain == 0)
      maps[i].shift = 0;
  }
  Diagonal d{kLongest, 0, 0};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    follow(maps[i], d, [](int, double) {});
    check(d.k < kLargest && d.theta < kLargest, "infinite_kernel",
          "got a kernel of {:.3g} behind word {} for |x|^2 / n0 = {:.3g}, wanted less than {:.3g}: "
          "take a smaller sigma_w2",
          std::max(d.k, d.theta), word_of(spec, i), kLongest, kLargest);
  }
  return maps;
}

}  // namespace keel
