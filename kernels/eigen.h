// Eigendecomposition of symmetric matrices.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// a [n, n] = V' diag(w) V, of which the lower triangle is read: row j of a becomes the unit
/// eigenvector of the j-th smallest eigenvalue. Returns the eigenvalues w [n], ascending, of a's
/// dtype. Throws Error where a is not finite or the iteration does not converge. LAPACK's syevd,
/// for which n is at most 32,732, or cuSOLVER's.
Tensor symmetric_eigen(const Tensor& a);

}  // namespace keel
