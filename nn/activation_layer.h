// relu, leakyrelu, prelu, gelu, silu, tanh, sigmoid, softplus, elu, selu: element by element, and
// without parameters but for prelu, whose slopes are.
#pragma once

#include "layer.h"

namespace keel {

class ActivationLayer : public Layer {
 public:
  explicit ActivationLayer(const LayerSpec& spec);
  std::vector<ParameterSpec> parameters(std::int64_t input_width) const override;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;

 private:
  LayerSpec spec_;
};

}  // namespace keel
