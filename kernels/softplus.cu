#include "softplus.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var softplus(const Var& x) { return elementwise<activations::Softplus>("softplus", x); }

}  // namespace keel
