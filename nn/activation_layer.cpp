#include "activation_layer.h"

#include "../kernels/elu.h"
#include "../kernels/gelu.h"
#include "../kernels/leaky_relu.h"
#include "../kernels/prelu.h"
#include "../kernels/relu.h"
#include "../kernels/sigmoid.h"
#include "../kernels/silu.h"
#include "../kernels/softplus.h"
#include "../kernels/tanh.h"

namespace keel {
namespace {

[[noreturn]] void refuse(const LayerSpec& spec) {
  fail("activation",
       "got {}, wanted relu, leakyrelu, prelu, gelu, silu, tanh, sigmoid, softplus, elu or selu",
       spec_text({spec}));
}

// Of silu(beta), which is x sigma(beta x).
Mixture logistic_of(double beta) {
  Mixture mixture = kLogisticMixture;
  for (double& square : mixture.scale2) square /= beta * beta;
  return mixture;
}

KernelMap map_of(const LayerSpec& spec) {
  KernelMap map;
  switch (spec.kind) {
    case LayerKind::prelu:
      map.own_leak = 1;
      [[fallthrough]];
    case LayerKind::leakyrelu:
      map.leak = spec.slope;
      [[fallthrough]];
    case LayerKind::relu:
      map.kind = KernelMap::Kind::relu;
      break;
    case LayerKind::gelu:
      if (spec.by_tanh) {
        map.kind = KernelMap::Kind::gaussians;
        map.gaussians = kGeluByTanhSum;
        break;
      }
      map.kind = KernelMap::Kind::mixture;
      map.mixture = kGeluMixture;
      break;
    case LayerKind::silu:
      map.kind = KernelMap::Kind::mixture;
      map.mixture = logistic_of(spec.beta);
      break;
    case LayerKind::tanh:
      map.kind = KernelMap::Kind::mixture;
      map.form = Form::distribution;
      map.mixture = kTanhMixture;
      break;
    case LayerKind::sigmoid:  // (1 + tanh(u/2)) / 2
      map.kind = KernelMap::Kind::mixture;
      map.form = Form::distribution;
      map.mixture = kLogisticMixture;
      map.slope = map.shift = 0.5;
      break;
    case LayerKind::softplus:
      map.kind = KernelMap::Kind::mixture;
      map.form = Form::integral;
      map.mixture = kLogisticMixture;
      break;
    case LayerKind::elu:
      map.kind = KernelMap::Kind::gaussians;
      map.gaussians = elu_sum(spec.alpha);
      break;
    case LayerKind::selu:
      map.kind = KernelMap::Kind::gaussians;
      map.gaussians = elu_sum(kSeluAlpha, kSeluScale);
      break;
    default:
      refuse(spec);
  }
  return map;
}

}  // namespace

ActivationLayer::ActivationLayer(const LayerSpec& spec) : spec_(spec) {
  map_of(spec);  // refuses other kinds
  check(spec.slope >= 0 && spec.slope <= 1, "activation", "got slope {}, wanted 0 to 1",
        spec.slope);
  check(spec.alpha >= 0 && spec.alpha <= 100, "activation", "got alpha {}, wanted 0 to 100",
        spec.alpha);
  check(spec.beta >= kLeastSiluBeta && spec.beta <= kMostSiluBeta, "activation",
        "got beta {}, wanted {} to {}", spec.beta, kLeastSiluBeta, kMostSiluBeta);
}

std::vector<ParameterSpec> ActivationLayer::parameters(std::int64_t input_width) const {
  if (spec_.kind != LayerKind::prelu) return {};
  return {{"weight", {spec_.per_unit ? input_width : 1}, spec_.slope, 0}};
}

Var ActivationLayer::apply(const Var& x, std::span<const Var> parameters) const {
  switch (spec_.kind) {
    case LayerKind::relu:
      return relu(x);
    case LayerKind::leakyrelu:
      return leaky_relu(x, spec_.slope);
    case LayerKind::prelu:
      return prelu(x, parameters[0]);
    case LayerKind::gelu:
      return spec_.by_tanh ? gelu_by_tanh(x) : gelu(x);
    case LayerKind::silu:
      return silu(x, spec_.beta);
    case LayerKind::tanh:
      return tanh(x);
    case LayerKind::sigmoid:
      return sigmoid(x);
    case LayerKind::softplus:
      return softplus(x);
    case LayerKind::elu:
      return elu(x, spec_.alpha);
    case LayerKind::selu:
      return selu(x);
    default:
      refuse(spec_);
  }
}

KernelMap ActivationLayer::kernel_map(KernelContext& context) const {
  LayerSpec alone = spec_;
  alone.identities = 0;
  const std::string word = spec_text({alone});
  KernelMap map = map_of(spec_);
  // The derivative by one slope of all is a sum over units, which no width averages.
  check(spec_.kind != LayerKind::prelu || spec_.per_unit, "kernel_map",
        "got '{}' (word {}), whose one slope of all units leaves a kernel that is random at any "
        "width, wanted prelu(per_unit=1)",
        word, context.word);
  check(context.gaussian, "kernel_map",
        "got '{}' (word {}) on what another activation left, which is not Gaussian: wanted a dense "
        "layer between",
        word, context.word);
  check(!context.averaged, "kernel_map",
        "got '{}' (word {}) on a residual's sum with values of a norm's gain, which has no kernel "
        "here: wanted a dense layer between, or that norm without a gain (affine=0)",
        word, context.word);
  map.gain = context.gain;
  context.gaussian = false;
  context.gain = 0;
  context.offset = map.offset();
  return map;
}

}  // namespace keel
