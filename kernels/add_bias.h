// add_bias: one vector added to every row.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x [n, p] + bias [p]. With an ensemble axis: x [S, n, p] + bias [S, p], or [p] for all members.
/// The bias's derivative goes to the sink as Rows{d_out}. Throws ShapeError where shapes do not fit
/// or dtypes differ, DeviceError where devices do.
Var add_bias(const Var& x, const Var& bias);

}  // namespace keel
