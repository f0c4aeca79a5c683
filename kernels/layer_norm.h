// layer_norm and rms_norm, and either with relu in one pass over memory. The arithmetic is in
// layer_norm_program.h.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Each row of x [n, d] (or [S, n, d]) standardised over its d columns, population variance, then
/// gain * xhat + bias; gain and bias [d] (for all members) or [S, d]. eps >= 0 is added to the
/// variance. A constant row has xhat = 0 (also for eps = 0, where its derivative is defined as 0);
/// entries up to 1e30 are safe; a NaN or an infinity makes its row NaN. Throws ShapeError where
/// shapes do not fit, d = 0 or dtypes differ, DeviceError where devices do, keel::Error
/// unless eps >= 0. Ba, Kiros and Hinton, Layer Normalization (2016).
Var layer_norm(const Var& x, const Var& gain, const Var& bias, double eps = 1e-5);
Var layer_norm(const Var& x, double eps = 1e-5);  ///< without gain and bias

/// relu(layer_norm(...)), to the same bits. Throws as it does.
Var layer_norm_relu(const Var& x, const Var& gain, const Var& bias, double eps = 1e-5);
Var layer_norm_relu(const Var& x, double eps = 1e-5);

/// What rms_norm adds where nothing is said: torch.nn.RMSNorm's of float32, 2^-23.
inline constexpr double kRmsEps = 0x1p-23;

/// Each row of x [n, d] (or [S, n, d]) over the root of the mean of its d squares, times gain, [d]
/// (for all members) or [S, d]. eps >= 0 is added to the mean of squares. A row of zeros has xhat =
/// 0 (also for eps = 0, where its derivative is defined as 0); entries up to 1e30 are safe; a NaN
/// or an infinity makes its row NaN. Throws as layer_norm(). Zhang and Sennrich, Root Mean Square
/// Layer Normalization (2019).
Var rms_norm(const Var& x, const Var& gain, double eps = kRmsEps);
Var rms_norm(const Var& x, double eps = kRmsEps);  ///< without gain

/// relu(rms_norm(...)), to the same bits. Throws as it does.
Var rms_norm_relu(const Var& x, const Var& gain, double eps = kRmsEps);
Var rms_norm_relu(const Var& x, double eps = kRmsEps);

}  // namespace keel
