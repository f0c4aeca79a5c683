// A sum of products, in eight partial sums that a compiler keeps in one register.
#pragma once

#include <cstddef>

namespace keel {

inline double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kPartials = 8;
  double partial[kPartials] = {};
  std::size_t i = 0;
  for (; i + kPartials <= n; i += kPartials)
    for (std::size_t k = 0; k < kPartials; ++k) partial[k] += a[i + k] * b[i + k];
  double sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (double part : partial) sum += part;
  return sum;
}

}  // namespace keel
