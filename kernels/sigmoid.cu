#include "sigmoid.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var sigmoid(const Var& x) { return elementwise<activations::Sigmoid>("sigmoid", x); }

}  // namespace keel
