// The multipliers of a dual, all in one vector.
#pragma once

#include "coupling.h"

namespace keel {

/// Where the multipliers of a dual lie in one vector: of the first units sigma and kappa, one each
/// (or one kappa for all), of the half-space, the side and the quadric, then of each later layer
/// its sigmas and those of its coupling, and at the end those of the image.
struct Multipliers {
  Multipliers(const std::vector<Units>& layers, std::size_t depth, bool one_kappa,
              const NormSet& set, const NormImage* image);
  std::size_t kappas = 0, half = 0, side = 0, quadric = 0, image = 0, size = 0;
  bool sided = false, curved = false;     ///< whether the set has a side, and a quadric to use
  std::vector<std::size_t> sigma{};       ///< where each layer's begin
  std::vector<CouplingPlace> coupling{};  ///< of each layer; of the first only its kappas' place
  std::vector<bool> not_negative{}, coupled{};
};

}  // namespace keel
