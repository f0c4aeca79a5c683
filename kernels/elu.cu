#include "elu.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var elu(const Var& x, double alpha) {
  check(alpha >= 0 && alpha <= 100, "elu", "got alpha {}, wanted 0 to 100", alpha);
  return elementwise("elu", x, activations::Elu{Constant(alpha), Constant(1)});
}

Var selu(const Var& x) {
  return elementwise("selu", x,
                     activations::Elu{Constant(kSeluScale * kSeluAlpha), Constant(kSeluScale)});
}

}  // namespace keel
