// Euclidean length, also where squares underflow or overflow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace keel {

inline double length_of(const double* x, std::size_t n) {
  double largest = 0, sum = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  if (largest == 0) return 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] / largest * (x[i] / largest);
  return largest * std::sqrt(sum);
}
inline double length_of(const std::vector<double>& x) { return length_of(x.data(), x.size()); }

}  // namespace keel
