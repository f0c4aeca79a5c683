// dense: z = weight_scale x W' + bias_scale b.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Factors of the NTK parameterisation, z = sqrt(sigma_w^2 / fan_in) W x + sigma_b b; 1 and 1 give
/// the standard one.
struct DenseScale {
  double weight = 1, bias = 1;
};

/// x [n, i], weight [o, i], bias [o] -> [n, o]. With an ensemble axis: x [S, n, i] (or [n, i],
/// shared), weight [S, o, i], bias [S, o] -> [S, n, o]; a weight [o, i] serves all members.
/// The weight's derivative goes to the sink as Outer{d_z, x}, the bias's as Rows{d_z}. Throws
/// ShapeError where shapes do not fit or dtypes differ, DeviceError where devices do.
Var dense(const Var& x, const Var& weight, const Var& bias, DenseScale scale = {});

}  // namespace keel
