#include "norm_map.h"

#include <cmath>

namespace keel {

Most most_of_normed(const NormMap& norm, const Direction& d) {
  using Long = long double;  // of squares that double has not
  const auto n = static_cast<Long>(norm.gain.size());
  Long mean = 0, squares = 0, sizes = 0;
  if (norm.centred)
    for (std::size_t i = 0; i < norm.gain.size(); ++i)
      mean += static_cast<Long>(d.w[i]) * norm.gain[i] / n;
  for (std::size_t i = 0; i < norm.gain.size(); ++i) {
    const Long value = static_cast<Long>(d.w[i]) * norm.gain[i] - mean;
    const Long size = static_cast<Long>(d.size[i]) * norm.gain[i];
    squares += value * value;
    sizes += size * size;
  }
  return {static_cast<double>(std::sqrt(n * squares)), static_cast<double>(std::sqrt(n * sizes))};
}

Most most_behind(const NormMap& norm, const Direction& d) {
  Most most = along(d, norm.shift.data());
  most += most_of_normed(norm, d);
  return most;
}

}  // namespace keel
