#include "gelu.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var gelu(const Var& x) { return elementwise<activations::Gelu>("gelu", x); }

Var gelu_by_tanh(const Var& x) { return elementwise<activations::GeluByTanh>("gelu_by_tanh", x); }

}  // namespace keel
