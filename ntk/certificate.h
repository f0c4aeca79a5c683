// Certificate: how far the predictions of a kernel regression can go, anywhere, and a search that
// tries to go further. The bounds follow from the kernel's feature map by Cauchy and Schwarz; with
// alpha = (Theta + ridge I)^-1 y,
//   |f(x)| <= sqrt(Theta(x,x)) sqrt(alpha^T Theta alpha) <= sqrt(Theta(x,x)) sqrt(y^T alpha),
// and Theta(x,x) has a supremum C wherever a Layer Norm stands (Ziomek et al. 2025), or an RMSNorm.
#pragma once

#include <optional>

#include "infinite_kernel.h"
#include "regression.h"
#include "search.h"

namespace keel {

/// Bounds on |f(x)| of one target; infinite where the kernel has no supremum.
struct Certificate {
  double supremum = 0;             ///< C
  double data_fit = 0;             ///< y^T (Theta + ridge I)^-1 y
  double slack = 0;                ///< what rounding and the solver's residual may add to data_fit
  double rkhs = 0;                 ///< at least alpha^T Theta alpha, the squared norm of f
  double smallest_eigenvalue = 0;  ///< of Theta + ridge I: an estimate, or the ridge

  double bound = 0;  ///< sqrt(C (data_fit + slack)): the certificate
  double tight = 0;  ///< sqrt(C rkhs): the same without the share that the ridge leaves unexplained
  /// sqrt(C n / smallest_eigenvalue) max|y|, the form printed in the paper, never below `bound`:
  /// as good as the estimate of the eigenvalue, of which 1% is taken off.
  double loose = 0;

  bool bounded() const;

  /// The bound at x, given Theta(x, x): smaller where the kernel is, finite for any kernel.
  double at(double theta) const;
};

/// `supremum`: InfiniteKernel::supremum().value, or infinity. The loose form alone needs the
/// smallest eigenvalue, up to a hundred solves; without `estimate_eigenvalue` the ridge, which is
/// never larger, stands in for it.
Certificate certify(const Regression& regression, double supremum, std::int64_t target = 0,
                    bool estimate_eigenvalue = true);

/// |f| of one target as a function to search. `regression` must outlive it.
RowFunction prediction_size(const Regression& regression, std::int64_t target = 0);

/// Theta(x, x) as a function to search. `kernel` must outlive it.
RowFunction kernel_diagonal(const Kernel& kernel);

/// How far exceed() goes: short of the 1e50 that kernels take.
inline constexpr double kFarthestExceed = 1e45;

/// The place along the ray through `x` where |f| first passes `wanted`, doubling from |x| or, where
/// that does not get there, halving; empty where it does not up to |x| = kFarthestExceed nor down
/// to its inverse, or before f overflows.
std::optional<Found> exceed(const RowFunction& size, const std::vector<double>& x, double wanted);

}  // namespace keel
