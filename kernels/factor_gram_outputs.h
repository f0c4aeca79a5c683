// What factor_gram leaves to do where samples are few and outputs several: products of the factors
// u of all outputs come as one matrix, products of v once for all outputs.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// into [n, m, o, o'] at (k, l, c, d) += u_ck,dl (scale v_kl + offset), or scale u_ck,dl where v is
/// undefined. u [o n, o' m]: row c n + k is output c of sample k, and columns alike; v [n, m].
/// symmetric: of u, entries on and below the diagonal alone are read, and count for both sides.
/// Throws ShapeError or DeviceError.
void add_output_pairs(const Tensor& u, const Tensor& v, double scale, double offset, bool symmetric,
                      const Tensor& into);

}  // namespace keel
