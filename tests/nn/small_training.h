// What tests of training train: a small net on a function of two features.
#pragma once

#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../nn/net.h"

namespace small_training {

using namespace keel;

inline constexpr const char* kSmallSpec = "dense(33) layernorm relu dense(17) gelu dense(1)";

struct Data {
  Tensor x, y;
};

inline Data some_data(std::int64_t n = 50, std::uint64_t seed = 1) {
  const Tensor x = normal({n, 2}, {seed, 0}, 2);
  std::vector<float> y, values = x.to_vector<float>();
  for (std::int64_t i = 0; i < n; ++i) y.push_back(std::sin(values[2 * i]) + values[2 * i + 1]);
  return {x, Tensor::from(y, {n, 1})};
}

}  // namespace small_training
