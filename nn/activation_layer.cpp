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

}  // namespace keel
