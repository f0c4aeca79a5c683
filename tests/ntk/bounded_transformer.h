// Transformers whose parameters a test sets, and what they predict: what a bound is judged by.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../../core/random.h"
#include "../../nn/transformer.h"
#include "../../ntk/transformer_bound.h"
#include "../message_of.h"
#include "../norm_places.h"

namespace keel::bounded {

struct FoundOutputs {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void look(const Transformer& net, const Tensor& x) {
    for (double value : net.predict(x).to_vector<double>()) {
      REQUIRE(std::isfinite(value));
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

inline void check_within(const FoundOutputs& found, const Interval& proved) {
  CHECK(found.low >= proved.low);
  CHECK(found.high <= proved.high);
}

// Why there is no bound.
inline std::string refusal_of(const Transformer& net) {
  return message_of([&] { bound_transformer(net); });
}

// Sequences of every size, and of sizes that change within one.
inline FoundOutputs search(const Transformer& net, std::uint64_t seed) {
  constexpr std::int64_t kEach = 400;
  const std::int64_t length = net.options().length;
  FoundOutputs found;
  for (std::uint64_t kind = 0; kind < 12; ++kind) {
    const Tensor x = normal({kEach, length}, {seed, 2 * kind}, 1, DType::f64);
    const Tensor sizes = normal({kEach, length}, {seed, 2 * kind + 1}, 1, DType::f64);
    double *values = x.data<double>(), *size = sizes.data<double>();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      values[i] *= kind < 6 ? std::pow(10.0, 2.0 * static_cast<double>(kind) - 2)
                            : std::exp(static_cast<double>(kind) / 2 * size[i]);
    found.look(net, x);
  }
  return found;
}

inline void scale_parameter(const Transformer& net, std::size_t p, double factor) {
  const Tensor view = net.layout().view(net.flat(), p);
  double* values = view.data<double>();
  for (std::int64_t i = 0; i < view.elements(); ++i) values[i] *= factor;
}

// Small, of a shape, weights larger or smaller than drawn, and norms' gains by the seed.
inline Transformer drawn_transformer(std::uint64_t seed, const TransformerNorms& norms = {}) {
  TransformerOptions options;
  options.length = 1 + static_cast<std::int64_t>(seed % 5);
  options.heads = 1 + static_cast<std::int64_t>(seed % 3);
  options.width = options.heads * (1 + static_cast<std::int64_t>(seed % 4));
  options.hidden = 1 + static_cast<std::int64_t>(seed % 7);
  options.blocks = 1 + static_cast<std::int64_t>(seed % 3);
  options.norms = norms;
  options.seeds = {seed};
  options.dtype = DType::f64;
  Transformer net(options);
  for (std::size_t p = 3; p < net.layout().entries().size(); ++p)
    scale_parameter(net, p, seed % 2 == 0 ? 2 : 0.5);
  test::shake_norms(net, seed);
  return net;
}

// A net whose blocks add nothing: last . LN(weight x + bias + place).
inline Transformer without_blocks(std::int64_t length, std::uint64_t seed, std::int64_t width = 8) {
  TransformerOptions options;
  options.length = length;
  options.width = width;
  options.hidden = 2;
  options.blocks = 1;
  options.seeds = {seed};
  options.dtype = DType::f64;
  Transformer net(options);
  for (const std::size_t p : {7u, 8u, 11u, 12u}) scale_parameter(net, p, 0);
  test::shake_norms(net, seed);
  return net;
}

// What such a net of one place gives for x, in long double.
inline double exactly(const Transformer& net, long double x) {
  const auto values = [&](std::size_t p) {
    return net.layout().view(net.flat(), p).to_vector<double>();
  };
  const auto weight = values(0), bias = values(1), place = values(2), gain = values(3);
  const auto shift = values(4), last = values(13);
  const std::size_t n = bias.size();
  std::vector<long double> z(n);
  long double mean = 0, variance = 0, out = values(14)[0];
  for (std::size_t i = 0; i < n; ++i)
    mean += (z[i] = weight[i] * x + (static_cast<long double>(bias[i]) + place[i])) / n;
  for (long double value : z) variance += (value - mean) * (value - mean) / n;
  for (std::size_t i = 0; i < n; ++i)
    out += last[i] * ((z[i] - mean) / std::sqrt(variance + 1e-5L) * gain[i] + shift[i]);
  return static_cast<double>(out);
}

}  // namespace keel::bounded
