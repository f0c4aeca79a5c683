#include "dense_layer.h"

#include <cmath>

#include "../kernels/dense.h"

namespace keel {

DenseLayer::DenseLayer(std::int64_t width, const DenseInit& init) : width_(width), init_(init) {
  check<ShapeError>(width >= 1, "dense", "got width {}, wanted at least 1", width);
  check(std::isfinite(init.sigma_w2) && init.sigma_w2 > 0 && std::isfinite(init.sigma_b2) &&
            init.sigma_b2 >= 0,
        "dense", "got sigma_w2 {} and sigma_b2 {}, wanted sigma_w2 > 0 and sigma_b2 >= 0",
        init.sigma_w2, init.sigma_b2);
}

std::vector<ParameterSpec> DenseLayer::parameters(std::int64_t input_width) const {
  const double weight = std::sqrt(init_.sigma_w2 / static_cast<double>(input_width));
  const double bias = std::sqrt(init_.sigma_b2);
  if (init_.parameterisation == Parameterisation::ntk)
    return {{"weight", {width_, input_width}, 0, 1, weight, init_.weights},
            {"bias", {width_}, 0, 1, bias}};
  return {{"weight", {width_, input_width}, 0, weight, 1, init_.weights},
          {"bias", {width_}, 0, bias}};
}

Var DenseLayer::apply(const Var& x, std::span<const Var> parameters) const {
  DenseScale scale;
  if (init_.parameterisation == Parameterisation::ntk)
    scale = {std::sqrt(init_.sigma_w2 / static_cast<double>(x.value().size(-1))),
             std::sqrt(init_.sigma_b2)};
  return dense(x, parameters[0], parameters[1], scale);
}

KernelMap DenseLayer::kernel_map(KernelContext& context) const {
  KernelMap map;
  map.kind = KernelMap::Kind::dense;
  map.weight = init_.sigma_w2;
  map.bias = init_.sigma_b2;
  // The layer's own share of Theta: its new K, or sum_i a_i a_i' + 1 of unscaled weights and bias.
  const bool ntk = init_.parameterisation == Parameterisation::ntk;
  map.from_k = ntk ? map.weight : static_cast<double>(context.width);
  map.constant = ntk ? map.bias : 1;
  map.from_k += map.weight * context.gain;
  context.width = width_;
  context.gaussian = true;
  context.gain = 0;
  context.averaged = false;
  context.offset = false;
  return map;
}

}  // namespace keel
