// dense(width): z = W a + b in the standard or the NTK parameterisation.
#pragma once

#include "layer.h"

namespace keel {

class DenseLayer : public Layer {
 public:
  DenseLayer(std::int64_t width, const DenseInit& init);

  std::int64_t output_width(std::int64_t) const override { return width_; }
  std::vector<ParameterSpec> parameters(std::int64_t input_width) const override;
  Var apply(const Var& x, std::span<const Var> parameters) const override;
  KernelMap kernel_map(KernelContext& context) const override;

 private:
  std::int64_t width_;
  DenseInit init_;
};

}  // namespace keel
