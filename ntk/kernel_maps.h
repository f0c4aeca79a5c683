// The maps of a net of infinite width: from a SPEC to what the pair recursion runs.
#pragma once

#include "infinite_kernel.h"

namespace keel {

/// One map a layer. Throws what InfiniteKernel's constructor does.
std::vector<KernelMap> kernel_maps(const Spec& spec, std::int64_t input_width,
                                   const InfiniteKernelOptions& options);

}  // namespace keel
