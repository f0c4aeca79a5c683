// add, mul, scale: elementwise arithmetic on tensors of one shape.
#pragma once

#include "../core/tape.h"

namespace keel {

/// a + b, equal shapes.
Var add(const Var& a, const Var& b);

/// a b, equal shapes, element by element.
Var mul(const Var& a, const Var& b);

/// factor x.
Var scale(const Var& x, double factor);

}  // namespace keel
