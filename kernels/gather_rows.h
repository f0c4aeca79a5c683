// gather_rows: rows of a matrix in a given order, as mini-batches need them.
#pragma once

#include "../core/tensor.h"

namespace keel {

/// Row r of member s of `into` [b, d] or [S, b, d] becomes row order[s, first[s] + r] of `source`
/// [n, d] (shared) or [S, n, d]. order [n] or [S, n] and first [S] are float64 tensors of whole
/// numbers, on the device: a recorded CUDA graph moves on without the host. No bounds are checked.
void gather_rows(const Tensor& source, const Tensor& order, const Tensor& first,
                 const Tensor& into);

}  // namespace keel
