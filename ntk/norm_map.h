// NormMap: a norm of a transformer, and what a linear function of its output is at most.
#pragma once

#include <vector>

#include "direction.h"

namespace keel {

/// gain u + shift, u any vector of width elements with |u|^2 <= width, and of mean 0 if `centred`:
/// a Layer Norm. Not centred: an RMSNorm, whose shift is 0.
struct NormMap {
  std::vector<double> gain, shift;
  bool centred = true;
};

/// Of d . (gain u), u as above.
Most most_of_normed(const NormMap& norm, const Direction& d);

/// Of d . (gain u + shift): whatever the norm sees.
Most most_behind(const NormMap& norm, const Direction& d);

}  // namespace keel
