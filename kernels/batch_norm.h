// batch_norm, in training: each unit standardised over the rows of its batch. The arithmetic is
// Layer Norm's (layer_norm_program.h), of the transposed batch. What it is in evaluation:
// nn/frozen.h.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Each column of x [n, d], n > 0 (or [S, n, d], each member's by themselves), standardised over
/// its n rows, population variance, then gain * xhat + bias; gain and bias [d] (for all members) or
/// [S, d]: then x may be [n, d], shared by the members, and the result is [S, n, d]. eps >= 0 is
/// added to the variance. A constant column, as every one of a single row, has xhat = 0. No row has
/// a derivative of its own: a sink that keeps samples apart is refused. Throws ShapeError where
/// shapes do not fit, n or d is 0 or dtypes differ, DeviceError where devices do, keel::Error
/// unless eps >= 0. Ioffe and Szegedy, Batch Normalization (2015), Algorithm 1.
Var batch_norm(const Var& x, const Var& gain, const Var& bias, double eps = 1e-5);
Var batch_norm(const Var& x, double eps = 1e-5);  ///< without gain and bias

}  // namespace keel
