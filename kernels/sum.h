// Sums: over all elements of a member, and down the rows of a matrix. Always in the same order.
#pragma once

#include "../core/tape.h"

namespace keel {

/// Sum of all elements: [n, d] -> []; with an ensemble axis, per member: [S, n, d] -> [S].
Var sum(const Var& x);

/// Their mean. Throws ShapeError where there are none.
Var mean(const Var& x);

/// into = scale * (sum of x over its rows) + (accumulate ? into : 0). x [n, p] -> [p], or
/// [S, n, p] -> [S, p]. Chunks of 64 rows, then chunks of their sums, without atomics: the same
/// input gives the same bits, on every device. Throws ShapeError where x has another rank, `into`
/// another number of elements or dtypes differ, DeviceError where devices do.
void sum_rows(const Tensor& x, double scale, bool accumulate, const Tensor& into);

/// Two of those, x and y of one shape and kind: the same bits, in the launches of one where a GPU
/// has up to 8192 rows. Throws as that, and where x and y differ in shape, dtype or device.
void sum_rows(const Tensor& x, const Tensor& y, double scale, const Tensor& into_x,
              const Tensor& into_y);

}  // namespace keel
