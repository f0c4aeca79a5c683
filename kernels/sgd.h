// sgd: stochastic gradient descent with momentum, for all parameters of a net or ensemble at once.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// As in PyTorch, without dampening.
struct SgdOptions {
  double lr = 1e-2, momentum = 0;
};

/// velocity = momentum velocity + gradients; parameters -= lr velocity. Sutskever et al. (2013),
/// with the learning rate outside, as in PyTorch. All of one shape; velocity starts at zero.
/// Throws ShapeError where shapes or dtypes differ, DeviceError where devices do, keel::Error
/// unless lr and momentum are at least 0 and finite.
void sgd(const Tensor& parameters, const Tensor& gradients, const Tensor& velocity,
         const SgdOptions& options);

}  // namespace keel
