// softplus: ln(1 + exp(x)), a relu without its corner.
#pragma once

#include "../core/tape.h"

namespace keel {

/// ln(1 + exp(x)), any shape; its derivative is sigmoid(x). Dugas et al. (2001), "Incorporating
/// second-order functional knowledge for better option pricing".
Var softplus(const Var& x);

}  // namespace keel
