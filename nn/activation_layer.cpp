#include "activation_layer.h"

#include "../kernels/gelu.h"
#include "../kernels/relu.h"
#include "../kernels/silu.h"

namespace keel {

ActivationLayer::ActivationLayer(LayerKind kind) : kind_(kind) {
  check(kind == LayerKind::relu || kind == LayerKind::gelu || kind == LayerKind::silu, "activation",
        "got {}, wanted relu, gelu or silu", spec_text({LayerSpec{.kind = kind}}));
}

Var ActivationLayer::apply(const Var& x, std::span<const Var>) const {
  if (kind_ == LayerKind::relu) return relu(x);
  return kind_ == LayerKind::gelu ? gelu(x) : silu(x);
}

KernelMap ActivationLayer::kernel_map(KernelContext& context) const {
  check(context.gaussian, "kernel_map",
        "got '{}' (word {}) on what another activation left, which is not Gaussian: wanted a dense "
        "layer between",
        spec_text({LayerSpec{.kind = kind_}}), context.word);
  KernelMap map;
  map.kind = kind_ == LayerKind::relu ? KernelMap::Kind::relu : KernelMap::Kind::mixture;
  if (kind_ == LayerKind::gelu) map.mixture = kGeluMixture;
  if (kind_ == LayerKind::silu) map.mixture = kSiluMixture;
  map.gain = context.gain;
  context.gaussian = false;
  context.gain = 0;
  return map;
}

}  // namespace keel
