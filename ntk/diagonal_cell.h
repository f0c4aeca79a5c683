// The diagonal of a kernel of infinite width over a range of |x|^2 / n0: an enclosure of K and
// Theta, layer by layer (docs/kernels.md, "The largest Theta(x, x)").
#pragma once

#include "../kernels/kernel_map.h"
#include "enclosure.h"

namespace keel {

/// What an activation of a mean that stays where its variance vanishes leaves of both.
struct Varied {
  bool known = false;
  Enclosure variance, ratio;  ///< and Theta / variance
};

/// The diagonal over a range of r. `ratio`, Theta / K, varies little where K and Theta themselves
/// span decades; `mean`: (the mean of the values)^2 / K; `over`: K / K kept, within a residual.
struct DiagonalCell {
  Enclosure k, theta, ratio, mean, over;
  Varied varied{};
};

/// Takes the cell through one map; `kept` is what a residual's beginning kept.
void through(const KernelMap& map, DiagonalCell& c, DiagonalCell& kept);

}  // namespace keel
