#include "norm_layers.h"

#include "../kernels/batch_norm.h"
#include "../kernels/layer_norm.h"

namespace keel {

std::vector<ParameterSpec> NormLayer::parameters(std::int64_t input_width) const {
  if (!affine_) return {};
  return {{"weight", {input_width}, 1, 0}, {"bias", {input_width}, 0, 0}};
}

Var LayerNormLayer::apply(const Var& x, std::span<const Var> parameters) const {
  return affine_ ? layer_norm(x, parameters[0], parameters[1], eps_) : layer_norm(x, eps_);
}

// Values become u = (z - mean) / deviation, whose mean and deviation are constants in the limit. A
// bias adds 1 to every unit's Theta, a gain u u', which waits for what averages over units. What
// waits is z z' of a gain before, z = u deviation + mean: u u' goes on waiting, mean mean' does
// not.
// Where a sigmoid's or softplus's input hardly varies K is its mean squared but for the last
// digits, and these are what is left of a variance.
KernelMap LayerNormLayer::kernel_map(KernelContext& context) const {
  constexpr double kLeastEps = 1e-9;
  check(!context.offset || eps_ >= kLeastEps, "kernel_map",
        "got eps {:g} at word {}, behind a sigmoid or softplus, wanted {:g} or more", eps_,
        context.word, kLeastEps);
  context.offset = false;
  KernelMap map;
  map.kind = KernelMap::Kind::layer_norm;
  map.eps = eps_;
  map.gain = context.gain;
  map.constant = affine_ ? 1 : 0;
  context.gain += affine_ ? 1 : 0;
  return map;
}

std::vector<ParameterSpec> RmsNormLayer::parameters(std::int64_t input_width) const {
  if (!affine_) return {};
  return {{"weight", {input_width}, 1, 0}};
}

Var RmsNormLayer::apply(const Var& x, std::span<const Var> parameters) const {
  return affine_ ? rms_norm(x, parameters[0], eps_) : rms_norm(x, eps_);
}

// As a Layer Norm, of values less nothing, and without a bias.
KernelMap RmsNormLayer::kernel_map(KernelContext& context) const {
  KernelMap map;
  map.kind = KernelMap::Kind::layer_norm;
  map.eps = eps_;
  map.centred = 0;
  context.gain += affine_ ? 1 : 0;
  return map;
}

Var BatchNormLayer::apply(const Var& x, std::span<const Var> parameters) const {
  return affine_ ? batch_norm(x, parameters[0], parameters[1], eps_) : batch_norm(x, eps_);
}

KernelMap BatchNormLayer::kernel_map(KernelContext& context) const {
  fail("infinite_kernel",
       "got a batchnorm at word {}, wanted layers of one input at a time: it has no kernel of two "
       "inputs alone",
       context.word);
}

}  // namespace keel
