// Conjugate gradients on the host, in double: what turns a rough factor into an exact solve.
#pragma once

#include <functional>

#include "../core/tensor.h"
#include "../core/work_progress.h"

namespace keel {

/// [n, k] float64 on the CPU -> the same shape.
using LinearMap = std::function<Tensor(const Tensor&)>;

struct CgResult {
  /// stagnated: double has no more digits to give. exhausted: most_products were made.
  enum Outcome { converged, stagnated, exhausted, negative_curvature } outcome = converged;
  int products = 0;      ///< with the matrix
  double residual = 0;   ///< largest |b - A x| / |b| of a column, from the last product with x
  double curvature = 0;  ///< negative_curvature: p'Ap / p'p of the direction that has it
  Tensor r;              ///< b - A x, from the last product with x
};

/// Solves A x = b for each column of b [n, k] by itself, from the x that is given, until
/// |b - A x| <= tolerance |b|: checked with a product, not taken from the recurrence, which starts
/// anew where it had drifted. The preconditioner may be rounded (flexible form: Notay 2000, SIAM J.
/// Sci. Comput. 22(4)). `progress` is how much of log(tolerance) the largest residual is.
CgResult conjugate_gradients(const LinearMap& matrix, const LinearMap& preconditioner,
                             const Tensor& b, const Tensor& x, double tolerance, int most_products,
                             const WorkProgress& progress = {});

}  // namespace keel
