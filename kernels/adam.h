// adam: one update of all parameters of a net, or of an ensemble of nets, at once.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// Defaults as in Kingma and Ba (2015) and in PyTorch. With eps 0 a parameter whose derivative was
/// never anything but 0 becomes NaN, as it does in PyTorch.
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// Moments of each parameter, and the number of steps so far. All live on the parameters' device,
/// the count too: a recorded CUDA graph can be replayed without the host knowing the step.
struct AdamState {
  explicit AdamState(const Tensor& parameters);
  Tensor first, second;  ///< shaped as the parameters
  Tensor step;           ///< float64 [3]: steps t, lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
};

/// Throws keel::Error unless lr and eps are at least 0, lr finite, and the betas in [0, 1).
void check_adam(const AdamOptions& options);

/// parameters -= lr mhat / (sqrt(vhat) + eps): Kingma and Ba, Adam (2015), algorithm 1.
/// parameters and gradients: one shape (a flat tensor that every parameter is a slice of, usually).
/// Throws ShapeError where shapes or dtypes differ, those of the state's moments too, DeviceError
/// where devices do, and as check_adam().
void adam(const Tensor& parameters, const Tensor& gradients, AdamState& state,
          const AdamOptions& options = {});

}  // namespace keel
