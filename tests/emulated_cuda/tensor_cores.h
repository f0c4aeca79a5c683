// The tensor cores of an emulated GPU, as far as keel uses them: TF32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "device_functions.h"

namespace keel::emulated {

/// A sum as a tensor core makes it, without a bit to spare: of every addend what lies below 24 bits
/// of the largest is cut off, and of the sum what lies below 24 of its own (Fasi, Higham, Mikaitis
/// and Pranesh, PeerJ CS 2021: how many bits more a generation keeps differs).
template <int kCount>
float cut_sum(const double (&addends)[kCount]) {
  double largest = 0, plain = 0;
  for (const double x : addends) {
    largest = std::fmax(largest, std::fabs(x));
    plain += x;
  }
  if (largest == 0 || !std::isfinite(plain)) return static_cast<float>(plain);
  const int last = std::max(std::ilogb(largest) - 23, -149);
  const double unit = std::ldexp(1.0, last), per_unit = std::ldexp(1.0, -last);
  std::int64_t sum = 0;
  for (const double x : addends) sum += static_cast<std::int64_t>(x * per_unit);
  std::uint64_t bits = static_cast<std::uint64_t>(std::abs(sum));
  const int beyond = std::max(0, static_cast<int>(std::bit_width(bits)) - 24);
  bits = bits >> beyond << beyond;
  return static_cast<float>((sum < 0 ? -unit : unit) * static_cast<double>(bits));
}

/// To the 19 bits that TF32 has.
inline float cut_to_tf32(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000);
}

/// The tensor cores of a warp (kernels/factor_gram_tensor.h): all lanes hand their parts of a and b
/// over, and each sums its own four entries.
inline void multiply_add_tf32(float (&d)[4], const float (&a)[4], float b0, float b1) {
  struct Parts {
    float a[4], b[2];
  };
  Block& block = Block::current();
  const unsigned lane = block.lane();
  const auto of = block.exchange(
      Parts{{cut_to_tf32(a[0]), cut_to_tf32(a[1]), cut_to_tf32(a[2]), cut_to_tf32(a[3])},
            {cut_to_tf32(b0), cut_to_tf32(b1)}});
  Parts row[4], col[2][4];  // by column of a, and row of b, modulo 4
  for (unsigned k = 0; k < 4; ++k) {
    row[k] = of(lane / 4 * 4 + k);
    for (unsigned right = 0; right < 2; ++right) col[right][k] = of((lane % 4 * 2 + right) * 4 + k);
  }
  for (unsigned entry = 0; entry < 4; ++entry) {
    double addends[9] = {d[entry]};
    for (unsigned k = 0; k < 8; ++k)
      addends[1 + k] =
          static_cast<double>(row[k % 4].a[k / 4 * 2 + entry / 2]) * col[entry % 2][k % 4].b[k / 4];
    d[entry] = cut_sum(addends);
  }
}

}  // namespace keel::emulated
