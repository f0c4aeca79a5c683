// What rounding does to a kernel of infinite width (docs/kernels.md, "Rounding").
#pragma once

#include <vector>

#include "../core/tensor.h"
#include "../kernels/kernel_map.h"

namespace keel {

/// How far entries of Theta may be off, over the root of the product of their diagonals: of inputs
/// that kernel_table() made `table` of, and inner products whose cosines are off by `cosine`.
/// Infinity where rounding may have left next to nothing of what a Layer Norm divides.
double kernel_rounding(const std::vector<KernelMap>& maps, const Tensor& table, double cosine);

}  // namespace keel
