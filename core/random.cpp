#include "random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace keel {
namespace {

struct Bits {
  std::uint64_t low, high;
};

// 128 random bits at `index` of the sequence `key`: the stream is half of the counter, so that
// neither neighbouring seeds nor neighbouring streams overlap.
Bits draw(RandomKey key, std::uint64_t index) {
  const r123::Philox4x32::ctr_type counter{
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
       static_cast<std::uint32_t>(key.stream), static_cast<std::uint32_t>(key.stream >> 32)}};
  const r123::Philox4x32::key_type seed{
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  const auto block = r123::Philox4x32()(counter, seed);
  return {block[0] | std::uint64_t{block[1]} << 32, block[2] | std::uint64_t{block[3]} << 32};
}

double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Fills a host tensor by f(index) -> pair of doubles, two elements a draw, then moves it.
template <class F>
Tensor fill_pairs(Shape shape, DType dtype, Device device, F f) {
  Tensor host = Tensor::empty(shape, dtype);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    T* out = host.data<T>();
    const std::int64_t n = shape.elements();
#pragma omp parallel for schedule(static) if (n > 16384)
    for (std::int64_t i = 0; i < n; i += 2) {
      const auto [first, second] = f(static_cast<std::uint64_t>(i / 2));
      out[i] = static_cast<T>(first);
      if (i + 1 < n) out[i + 1] = static_cast<T>(second);
    }
  });
  return host.to(device);
}

}  // namespace

Tensor uniform(Shape shape, RandomKey key, DType dtype, Device device) {
  return fill_pairs(shape, dtype, device, [key, dtype](std::uint64_t i) {
    const Bits bits = draw(key, i);
    // Rounding to float could reach 1: float32 cuts to 24 bits instead.
    const auto cut = [dtype](std::uint64_t b) {
      return unit_interval(dtype == DType::f32 ? b & ~((std::uint64_t{1} << 40) - 1) : b);
    };
    return std::pair(cut(bits.low), cut(bits.high));
  });
}

Tensor normal(Shape shape, RandomKey key, double stddev, DType dtype, Device device) {
  return fill_pairs(shape, dtype, device, [key, stddev](std::uint64_t i) {
    const Bits bits = draw(key, i);
    // Box and Muller (1958); 1 - u lies in (0, 1], so the logarithm is finite.
    const double radius = stddev * std::sqrt(-2 * std::log(1 - unit_interval(bits.low)));
    const double angle = 2 * std::numbers::pi * unit_interval(bits.high);
    return std::pair(radius * std::cos(angle), radius * std::sin(angle));
  });
}

std::vector<std::int64_t> permutation(std::int64_t n, RandomKey key) {
  check(n >= 0, "permutation", "got n = {}, wanted n >= 0", n);
  struct Keyed {
    std::uint64_t key;
    std::int64_t index;
  };
  std::vector<Keyed> order(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) order[i] = {draw(key, static_cast<std::uint64_t>(i)).low, i};
  std::sort(order.begin(), order.end(), [](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  });
  std::vector<std::int64_t> result(order.size());
  std::transform(order.begin(), order.end(), result.begin(),
                 [](const Keyed& keyed) { return keyed.index; });
  return result;
}

}  // namespace keel
