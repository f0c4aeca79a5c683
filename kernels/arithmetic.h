// add, mul, scale: elementwise arithmetic on tensors of one shape.
#pragma once

#include "../core/tape.h"

namespace keel {

/// a + b, equal shapes. Throws ShapeError where shapes or dtypes differ, DeviceError where devices
/// do.
Var add(const Var& a, const Var& b);

/// a b, equal shapes, element by element. Throws as add().
Var mul(const Var& a, const Var& b);

/// factor x.
Var scale(const Var& x, double factor);

}  // namespace keel
