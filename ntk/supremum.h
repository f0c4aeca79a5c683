// The largest value that a kernel of infinite width takes on its diagonal.
#pragma once

#include <vector>

#include "../kernels/kernel_map.h"
#include "interval.h"

namespace keel {

/// The largest |x|^2 / n0 that a kernel of infinite width takes.
inline constexpr double kLongest = 1e100;

/// Of f(r), a kernel at (x, x) as a function of r = |x|^2 / n0, over r = 0 and from 1e-30, or from
/// where it no longer changes, 1e-120 at the least, to 1e30 or as far as is asked for; beyond these
/// its limits are meant, and Error is thrown where it still changes.
struct Supremum {
  bool bounded = false;
  double value = 0;  ///< no input has more; at most 1 + 1e-6 times the largest there is
  double at = 0;  ///< r where the largest value found is reached; infinity: a limit. Not bounded:
                  ///< where it grows; 0 takes a norm with eps = 0 and no biases
  double limit = 0;  ///< as |x| -> infinity, of all r; infinity where unbounded
  /// Exponent p of f ~ |x|^p far away: 0 behind a norm of rows, or of K also a tanh or sigmoid; of
  /// Theta 1 if one of these stands before any norm; else 2. What is within a residual does not
  /// count: x passes it by.
  double growth = 0;
};

/// theta: of Theta; else of K. Branch and bound in log r (docs/kernels.md). farthest: of r up to
/// this alone, where a kernel that grows has a supremum, too; from 1e30 on a kernel that does not
/// grow is as over all r.
Supremum supremum_of(const std::vector<KernelMap>& maps, bool theta, double farthest = kInfinity);

}  // namespace keel
