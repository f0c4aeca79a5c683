// gelu: x Phi(x), Phi the standard normal distribution function (the exact form, by erf), and the
// form by tanh that stands for it in many nets.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x Phi(x), any shape. Hendrycks and Gimpel, Gaussian Error Linear Units (2016), eq. 1.
Var gelu(const Var& x);

/// Of gelu_by_tanh: 2 sqrt(2 / pi), and that times 0.044715.
inline constexpr double kGeluLinear = 1.5957691216057308, kGeluCubic = 0.07135481627260025;

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, any shape: within 4.8e-4 of gelu. Hendrycks
/// and Gimpel (2016), section 2; PyTorch's GELU(approximate="tanh"), JAX's gelu unless told
/// otherwise. As the logistic function of z is (1 + tanh(z / 2)) / 2, it is
/// x / (1 + exp(-x (kGeluLinear + kGeluCubic x^2))).
Var gelu_by_tanh(const Var& x);

}  // namespace keel
