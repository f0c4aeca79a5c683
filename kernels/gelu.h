// gelu: x Phi(x), Phi the standard normal distribution function (the exact form, by erf).
#pragma once

#include "../core/tape.h"

namespace keel {

/// x Phi(x), any shape. Hendrycks and Gimpel, Gaussian Error Linear Units (2016), eq. 1.
Var gelu(const Var& x);

}  // namespace keel
