// Descent on a dual's multipliers: wherever it stops there is a bound.
#pragma once

#include "tail_dual.h"

namespace keel {

/// The least bound of constant + v . phi(z) that `steps` of subgradient descent find, and then at
/// a finer tolerance. `rank`: of u.
TailDual::Value descend(const TailDual& dual, const std::vector<Units>& layers,
                        const std::vector<double>& v, double constant, std::int64_t rank,
                        std::int64_t steps);

}  // namespace keel
