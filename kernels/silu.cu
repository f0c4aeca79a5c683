#include "silu.h"

#include "activations.h"
#include "elementwise.cuh"

namespace keel {

Var silu(const Var& x, double beta) {
  check(beta >= kLeastSiluBeta && beta <= kMostSiluBeta, "silu", "got beta {}, wanted {} to {}",
        beta, kLeastSiluBeta, kMostSiluBeta);
  if (beta == 1) return elementwise("silu", x, activations::Silu<false>{Constant(beta)});
  return elementwise("silu", x, activations::Silu<true>{Constant(beta)});
}

}  // namespace keel
