// Triangular solves with a Cholesky factor, in place, on the lower triangle alone.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// b [n, k] becomes L^-1 b, L the lower triangle of l [n, n]. On the CPU the same bits for any
/// number of threads. A GPU multiplies by invert_diagonal_blocks(l), which who solves with one l
/// again and again hands over as `inverses`. Throws ShapeError.
void solve_lower(const Tensor& l, const Tensor& b, const Tensor& inverses = {});

/// b [n, k] becomes L'^-1 b.
void solve_lower_transposed(const Tensor& l, const Tensor& b, const Tensor& inverses = {});

}  // namespace keel
