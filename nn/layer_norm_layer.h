// layernorm: each sample standardised over its units, then gain and bias where affine.
#pragma once

#include "layer.h"

namespace keel {

class LayerNormLayer : public Layer {
 public:
  LayerNormLayer(bool affine, double eps) : affine_(affine), eps_(eps) {}

  std::vector<ParameterSpec> parameters(std::int64_t input_width) const override;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;

 private:
  bool affine_;
  double eps_;
};

}  // namespace keel
