// layernorm: each sample standardised over its units. rmsnorm: each sample's units over their root
// mean square. batchnorm: each unit standardised over the rows of its batch, in training alone:
// frozen() makes of a net with one what it is in evaluation. All have a gain where affine, and all
// but rmsnorm a bias.
#pragma once

#include "layer.h"

namespace keel {

class NormLayer : public Layer {
 public:
  NormLayer(bool affine, double eps) : affine_(affine), eps_(eps) {}

  std::vector<ParameterSpec> parameters(std::int64_t input_width) const override;

 protected:
  bool affine_;
  double eps_;
};

class LayerNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;
};

class RmsNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  std::vector<ParameterSpec> parameters(std::int64_t input_width) const override;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;
};

class BatchNormLayer final : public NormLayer {
 public:
  using NormLayer::NormLayer;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;
};

}  // namespace keel
