#include "relu.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var relu(const Var& x) { return elementwise<activations::Relu>("relu", x); }

}  // namespace keel
