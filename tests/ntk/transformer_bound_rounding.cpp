// The same where double loses digits, or its range ends.
#include <string>

#include "../../ntk/transformer_bound.h"
#include "bounded_transformer.h"

using namespace keel;
using namespace keel::bounded;

TEST_CASE(
    "transformer bound: weights that are nearly all mean, and places that are nearly a value") {
  constexpr double kLarge = 1e13;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Transformer mean = without_blocks(1, seed), value = without_blocks(1, seed);
    double* weight = mean.layout().view(mean.flat(), 0).data<double>();
    for (int i = 0; i < 8; ++i) weight[i] += kLarge;
    Interval proved = bound_transformer(mean);
    for (const long double x : {-1e30L, 1e30L}) {
      CHECK(exactly(mean, x) <= proved.high);
      CHECK(exactly(mean, x) >= proved.low);
    }
    const double* of_x = value.layout().view(value.flat(), 0).data<double>();
    double* bias = value.layout().view(value.flat(), 1).data<double>();
    for (int i = 0; i < 8; ++i) bias[i] += kLarge * of_x[i];
    proved = bound_transformer(value);
    for (long double beside = -5; beside < 5; beside += 0.01L) {
      CHECK(exactly(value, beside - kLarge) <= proved.high);
      CHECK(exactly(value, beside - kLarge) >= proved.low);
    }
  }
}

TEST_CASE("transformer bound: nearly all mean, and a place that is nearly a value, at once") {
  for (const double large : {1e3, 3e4, 9e4, 1e7})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Transformer net = without_blocks(1, seed);
      const auto at = [&](std::size_t p) {
        return net.layout().view(net.flat(), p).data<double>();
      };
      double *weight = at(0), *bias = at(1), *last = at(13), mean = 0;
      for (int i = 0; i < 8; ++i) mean += weight[i] / 8;
      const std::vector<double> other = normal({8}, {seed, 9}, 100, DType::f64).to_vector<double>();
      for (int i = 0; i < 8; ++i) {
        bias[i] = 150 * large * (weight[i] - mean) + other[static_cast<std::size_t>(i)];
        weight[i] += large / 2;
      }
      for (const std::size_t p : {2u, 4u}) scale_parameter(net, p, 0);
      fill(net.layout().view(net.flat(), 3), 1);
      // The last layer looks along what is left of the bias across the weight.
      long double w[8], rest[8], of_w = 0, of_rest = 0, ww = 0, wr = 0, rr = 0, wl = 0, rl = 0;
      for (int i = 0; i < 8; ++i) of_w += weight[i] / 8.0L, of_rest += bias[i] / 8.0L;
      for (int i = 0; i < 8; ++i) {
        w[i] = weight[i] - of_w;
        rest[i] = bias[i] - of_rest;
        ww += w[i] * w[i];
        wr += w[i] * rest[i];
      }
      for (int i = 0; i < 8; ++i) {
        rest[i] -= wr / ww * w[i];
        rr += rest[i] * rest[i];
      }
      for (int i = 0; i < 8; ++i) {
        last[i] = 0.1 * last[i] + static_cast<double>(rest[i] / std::sqrt(rr));
        wl += w[i] * last[i];
        rl += rest[i] * last[i];
      }
      const Interval proved = bound_transformer(net);
      for (const long double beside : {0.99L, 1.0L, 1.01L}) {
        const double f = exactly(net, beside * rr / ww * wl / rl - wr / ww);
        CHECK(f <= proved.high);
        CHECK(f >= proved.low);
        CHECK(f > 0.99 * proved.high);
      }
    }
}

TEST_CASE("transformer bound: a mean of many large weights, whose rounding all goes one way") {
  constexpr int kWidth = 1024;
  const Transformer net = without_blocks(1, 3, kWidth);
  const auto at = [&](std::size_t p) { return net.layout().view(net.flat(), p).data<double>(); };
  double *weight = at(0), *last = at(13);
  fill(net.layout().view(net.flat(), 3), 1);
  scale_parameter(net, 4, 0);
  for (const double large : {8.2e4, 8.5e4, 8.8e4})
    for (const double side : {-1.0, 1.0}) {
      for (int i = 0; i < kWidth; ++i) {
        const double sign = i % 2 == 0 ? -1 : 1;
        weight[i] = large + sign;
        last[i] = (sign + side) / 32;  // the mean's error is along the second
      }
      const Interval proved = bound_transformer(net);
      for (const long double x : {-1e30L, 1e30L}) {
        CHECK(exactly(net, x) <= proved.high);
        CHECK(exactly(net, x) >= proved.low);
      }
    }
}

TEST_CASE("transformer bound: numbers whose squares are none") {
  for (const double small : {1e-150, 1e-158, 1e-160, 1e-161, 3e-162, 1e-200}) {
    CAPTURE(small);
    const Transformer net = without_blocks(1, 2, 4);
    scale_parameter(net, 0, small);
    const Interval proved = bound_transformer(net);
    FoundOutputs found;
    for (const double x : {-1.0, 0.0, 1.0})
      found.look(net, Tensor::full({1, 1}, x * std::min(1e300, 1e40 / small), DType::f64));
    CHECK(found.low >= proved.low);
    CHECK(found.high <= proved.high);
  }
  // Hidden units of next to nothing, of which much is made; behind an embedding of one value or of
  // many.
  for (const bool one : {true, false}) {
    const Transformer net(
        {.length = 1, .width = 4, .heads = 1, .hidden = 2, .blocks = 1, .dtype = DType::f64});
    for (const std::size_t p : {7u, 8u, 10u, 11u, 12u, 13u, 14u}) scale_parameter(net, p, 0);
    const auto at = [&](std::size_t p) { return net.layout().view(net.flat(), p).data<double>(); };
    if (one) fill(net.layout().view(net.flat(), 0), 0.75);  // which the mean takes away
    double *hidden = at(9), *back = at(11);
    for (int i = 0; i < 4; ++i) hidden[4 + i] = -(hidden[i] *= 1e-170);
    at(3)[3] = 0;
    back[6] = back[7] = 1e170;  // of both units, into the one that no norm gives anything
    at(13)[3] = 1;
    const Interval proved = bound_transformer(net);
    const FoundOutputs found = search(net, 5);
    CHECK(found.high > 0.1);
    CHECK(found.low >= proved.low);
    CHECK(found.high <= proved.high);
  }
}

TEST_CASE("transformer bound: a gain that leaves double where a plane's vectors are made") {
  for (const double most : {1e307, 1.7e308}) {
    CAPTURE(most);
    const Transformer net(
        {.length = 1, .width = 4, .heads = 1, .hidden = 2, .blocks = 1, .dtype = DType::f64});
    const auto set = [&](std::size_t p, const std::vector<double>& values) {
      const Tensor home = net.layout().view(net.flat(), p);
      copy(home, Tensor::from(values, home.shape()));
    };
    for (std::size_t p = 4; p < net.layout().entries().size(); ++p)
      fill(net.layout().view(net.flat(), p), 0);
    set(3, {most, 1e307, 1e307, 1e307});
    set(13, {0, 1e-298, -1e-298, 1e-298});
    long double low = 0, high = 0;
    for (int i = -300; i <= 300; ++i) {
      const long double value = exactly(net, std::sinh(i / 30.0L));
      low = std::min(low, value);
      high = std::max(high, value);
    }
    CHECK(high > 1e9);
    try {
      const Interval proved = bound_transformer(net);
      CHECK(low >= proved.low);
      CHECK(high <= proved.high);
    } catch (const Error& error) {  // nor is it wrong to prove nothing
      CHECK(std::string(error.what()).starts_with("transformer_bound: got weights so large"));
    }
  }
}
