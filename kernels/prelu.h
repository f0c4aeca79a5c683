// prelu: a leaky relu whose slope below 0 is trained, one for all units or one each.
#pragma once

#include "../core/tape.h"

namespace keel {

/// x where it is above 0, else slope x. He, Zhang, Ren and Sun, Delving Deep into Rectifiers
/// (2015), eq. 1. x [n, d] with slope [1] or [d]; x [S, n, d] with these, or with each member's
/// own, [S, 1] or [S, d]. d_x is slope d_y where x is 0 or below, as PyTorch has it; the slope of a
/// unit that is never below 0 has the derivative 0. A NaN of x stays one. Throws ShapeError.
Var prelu(const Var& x, const Var& slope);

}  // namespace keel
