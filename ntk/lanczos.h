// Lanczos iterations: an end of the spectrum of a matrix that is known by its products alone.
#pragma once

#include "conjugate_gradients.h"

namespace keel {

/// The largest eigenvalue of a symmetric matrix [n, n] whose largest is positive: an estimate from
/// below, usually within 1%, from at most 100 products. Every vector is kept orthogonal to all
/// before it.
double largest_eigenvalue(const LinearMap& matrix, std::int64_t n);

}  // namespace keel
