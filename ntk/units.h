// One layer's units behind a norm, and how far each goes.
#pragma once

#include <algorithm>
#include <cmath>

#include "activation.h"
#include "margin.h"
#include "unit_rows.h"

namespace keel {

/// One layer's units: z_j = origin_j + scale_j y_j, low_j <= y_j <= high_j, then an activation,
/// which the last `kept` pass by.
struct Units {
  LayerActivation activation = LayerKind::relu;
  std::size_t kept = 0;
  std::vector<double> origin{}, scale{}, low{}, high{};
  std::vector<double> summed{};  ///< sizes of what makes each z: what its rounding is measured by
  std::vector<double> centre{};  ///< near the activation's values: any number is valid
  Affine from{};                 ///< what makes z of the values before; empty for the first
  std::vector<double> from_sizes{};  ///< weight_sizes(from)
  std::size_t size() const { return origin.size(); }
  bool passes(std::size_t j) const { return j + kept >= size(); }
  Activation phi(std::size_t j) const {
    return passes(j) ? Activation::identity() : activation.of(j);
  }
  /// At least |z_j| and |phi(z_j)|, and what their rounding is measured by.
  double reach(std::size_t j) const {
    const double z = std::max(std::abs(origin[j]) + scale[j], summed[j]);
    return std::max(1.0, phi(j).spread(1)) * z + std::abs(centre[j]);
  }
};

}  // namespace keel
