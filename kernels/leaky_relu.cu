#include "leaky_relu.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var leaky_relu(const Var& x, double slope) {
  check(slope >= 0 && slope <= 1, "leaky_relu", "got slope {}, wanted 0 to 1", slope);
  return elementwise("leaky_relu", x, activations::LeakyRelu{Constant(slope)});
}

}  // namespace keel
