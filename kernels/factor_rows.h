// Row by row over factors: what J v, J' u and the diagonal of a Gram matrix are made of. All throw
// ShapeError where shapes do not fit or dtypes differ, DeviceError where devices do.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// into += scale x_k . y_k for each row k of x [n, p] or [S, n, p]; y has x's shape, or is one row
/// a member, [p] or [S, p]. into [n, o] or [S, n, o]: its column `column`.
void add_row_dots(double scale, const Tensor& x, const Tensor& y, const Tensor& into,
                  std::int64_t column);

/// Row k of x [n, p] or [S, n, p] times u_k, column `column` of u [n, o], for all members, or
/// [S, n, o].
Tensor scale_rows(const Tensor& x, const Tensor& u, std::int64_t column);

/// into += (u_k . u'_k)(scale v_k . v'_k + offset), or scale u_k . u'_k without v: the diagonal of
/// a GramTerm (factor_gram.h). u, u' [n, o] or [S, n, o]; v, v' [n, i], for all members, or [S, n,
/// i]; into [n] or [S, n].
void add_gram_diagonal(const Tensor& u, const Tensor& u2, const Tensor& v, const Tensor& v2,
                       double scale, double offset, const Tensor& into);

}  // namespace keel
