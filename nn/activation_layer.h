// relu, leakyrelu, gelu, silu, tanh, sigmoid, softplus, elu, selu: element by element, without
// parameters.
#pragma once

#include "layer.h"

namespace keel {

class ActivationLayer : public Layer {
 public:
  explicit ActivationLayer(const LayerSpec& spec);
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;

 private:
  LayerSpec spec_;
};

}  // namespace keel
