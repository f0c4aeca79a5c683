#include "tanh.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var tanh(const Var& x) { return elementwise<activations::Tanh>("tanh", x); }

}  // namespace keel
