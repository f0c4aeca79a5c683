// Gain and bias of the columns of a normalisation's x.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Throws ShapeError or DeviceError unless both, or the gain, are [d] (for all members) or, where
/// members may have their own, [S, d]: of x [S, n, d] for the same S, of x [n, d] for any.
void check_gain_and_bias(const char* op, const Var& x, const Var& gain, const Var& bias,
                         bool members_may_have_their_own);
void check_gain(const char* op, const Var& x, const Var& gain, bool members_may_have_their_own);

}  // namespace keel
