// Inverses of the blocks on a lower triangle's diagonal, with which a GPU solves by products alone:
// a triangle is solved row after row, by few threads, however many there are (Du Croz and Higham,
// "Stability of methods for matrix inversion", IMA J. Numer. Anal. 1992, on what that costs).
#pragma once

#include "../core/tensor.h"

namespace keel {

/// Rows of a block of a triangle of n rows: a power of 2 from 32 to 1024.
std::int64_t diagonal_block(std::int64_t n);

/// l [n, n] on a GPU, of which the lower triangle is read -> [blocks, side, side] of its dtype,
/// with side = diagonal_block(n): lower triangles, zeros above. The last block is that of l
/// continued as an identity. A zero on the diagonal gives infinities and NaN. Throws ShapeError, or
/// DeviceError for a tensor on the CPU, whose solves need none.
Tensor invert_diagonal_blocks(const Tensor& l);

}  // namespace keel
