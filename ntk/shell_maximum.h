// The largest value of a quadratic over a ball, or a shell: the trust region problem.
#pragma once

#include <vector>

namespace keel {

struct ShellMaximum {
  double value = 0;       ///< no smaller than the maximum, whatever rounding did in finding it
  std::vector<double> u;  ///< where it is reached, [k]
};

/// max of g.u + u^T M u over inner <= |u| <= 1, M = E^T diag(values) E. `g` is in M's eigenbasis,
/// E g, and so is the answer's u; values [k] ascending. By duality (More and Sorensen 1983, lemma
/// 2.1), for every t >= values[k - 1]:
///   g.u + u^T M u <= max(t, t inner^2) + sum_i g_i^2 / (4 (t - values_i)),
/// of which the smallest is the maximum. 0 for k = 0.
ShellMaximum shell_maximum(const std::vector<double>& values, const std::vector<double>& g,
                           double inner);

}  // namespace keel
