// Counter-based random numbers (Philox4x32-10: Salmon et al., SC 2011). A draw is a function of
// (seed, stream, index) alone, so it is the same on every device and for every number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor.h"

namespace keel {

/// Names one sequence of draws: one parameter of one net, one epoch's shuffle.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// Uniform on [0, 1), 53 random bits; a float32 tensor holds the same draws cut to 24 bits.
Tensor uniform(Shape shape, RandomKey key, DType dtype = DType::f32, Device device = {});

/// Standard normal times `stddev`; a float32 tensor holds the float64 draws, rounded. A negative
/// `stddev` is not refused: it turns the sign of every draw.
Tensor normal(Shape shape, RandomKey key, double stddev = 1, DType dtype = DType::f32,
              Device device = {});

/// A uniformly random order of 0 .. n-1. Throws keel::Error where n is below 0.
std::vector<std::int64_t> permutation(std::int64_t n, RandomKey key);

}  // namespace keel
