// The interval that no prediction of a transformer leaves: never left, and tight where it is exact.
#include "../../ntk/transformer_bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../../core/random.h"

using namespace keel;

namespace {

struct Found {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void look(const Transformer& net, const Tensor& x) {
    for (double value : net.predict(x).to_vector<double>()) {
      REQUIRE(std::isfinite(value));
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

// Sequences of every size, and of sizes that change within one.
Found search(const Transformer& net, std::uint64_t seed) {
  constexpr std::int64_t kEach = 400;
  const std::int64_t length = net.options().length;
  Found found;
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

void scale_parameter(const Transformer& net, std::size_t p, double factor) {
  const Tensor view = net.layout().view(net.flat(), p);
  double* values = view.data<double>();
  for (std::int64_t i = 0; i < view.elements(); ++i) values[i] *= factor;
}

// Gains of either sign, and biases, of the Layer Norm.
void shake_norm(const Transformer& net, std::uint64_t seed) {
  for (const std::size_t p : {3u, 4u}) {
    const Tensor view = net.layout().view(net.flat(), p);
    copy(view, normal(view.shape(), {seed, 1000 + p}, 1, DType::f64));
  }
}

// A net whose blocks add nothing: last . LN(weight x + bias + place).
Transformer without_blocks(std::int64_t length, std::uint64_t seed, std::int64_t width = 8) {
  TransformerOptions options;
  options.length = length;
  options.width = width;
  options.hidden = 2;
  options.blocks = 1;
  options.seeds = {seed};
  options.dtype = DType::f64;
  Transformer net(options);
  for (const std::size_t p : {7u, 8u, 11u, 12u}) scale_parameter(net, p, 0);
  shake_norm(net, seed);
  return net;
}

// What such a net of one place gives for x, in long double.
double exactly(const Transformer& net, long double x) {
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

}  // namespace

TEST_CASE("transformer bound: no sequence passes it") {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    TransformerOptions options;
    options.length = 1 + static_cast<std::int64_t>(seed % 5);
    options.heads = 1 + static_cast<std::int64_t>(seed % 3);
    options.width = options.heads * (1 + static_cast<std::int64_t>(seed % 4));
    options.hidden = 1 + static_cast<std::int64_t>(seed % 7);
    options.blocks = 1 + static_cast<std::int64_t>(seed % 2);
    options.seeds = {seed};
    options.dtype = DType::f64;
    const Transformer net(options);
    // Larger weights than drawn, and gains of either sign; queries so large that attention picks.
    for (std::size_t p = 3; p < net.layout().entries().size(); ++p)
      scale_parameter(net, p, seed % 2 == 0 ? 2 : 0.5);
    shake_norm(net, seed);
    if (seed % 3 == 0) scale_parameter(net, 5, 30);
    const Interval proved = bound_transformer(net);
    const Found found = search(net, seed + 100);
    CAPTURE(seed);
    CHECK(found.low >= proved.low);
    CHECK(found.high <= proved.high);
    closest = std::max(closest, (found.high - found.low) / (proved.high - proved.low));
  }
  CHECK(closest > 0.9);  // some are small enough to be known well
}

TEST_CASE("transformer bound: exact where blocks add nothing") {
  const Transformer net = without_blocks(3, 0);
  const Interval proved = bound_transformer(net);
  Found found;
  for (double angle = -1.57; angle < 1.57; angle += 1e-3)
    found.look(net, Tensor::full({1, 3}, 5 * std::tan(angle), DType::f64));
  CHECK(found.high <= proved.high);
  CHECK(found.low >= proved.low);
  CHECK(found.high == doctest::Approx(proved.high).epsilon(1e-3));
  CHECK(found.low == doctest::Approx(proved.low).epsilon(1e-3));
}

// Of such numbers double knows a few digits of what the Layer Norm sees.
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
    Found found;
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
    const Found found = search(net, 5);
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

TEST_CASE("transformer bound: an embedding that the Layer Norm sees nothing of, or only that") {
  for (const bool of_values : {true, false}) {
    TransformerOptions options;
    options.length = 2;
    options.width = 4;
    options.heads = 2;
    options.hidden = 3;
    options.dtype = DType::f64;
    const Transformer net(options);
    // Equal in all units: the mean takes it away. Places of zeros leave rows that are constant.
    for (const std::size_t p :
         of_values ? std::vector<std::size_t>{0} : std::vector<std::size_t>{1, 2}) {
      const Tensor view = net.layout().view(net.flat(), p);
      fill(view, of_values ? 0.7 : 0);
    }
    const Interval proved = bound_transformer(net);
    Found found = search(net, 7);
    found.look(net, Tensor::zeros({1, 2}, DType::f64));
    CHECK(found.low >= proved.low);
    CHECK(found.high <= proved.high);
  }
}

TEST_CASE("transformer bound: a member's, in float32 too") {
  TransformerOptions options;
  options.length = 3;
  options.width = 8;
  options.hidden = 6;
  options.seeds = {1, 2};
  const Transformer both(options);
  options.seeds = {2};
  const Interval one = bound_transformer(Transformer(options)), second = bound_transformer(both, 1);
  CHECK(second.low == one.low);
  CHECK(second.high == one.high);
  CHECK(bound_transformer(both, 0).high != one.high);
  CHECK_THROWS_WITH_AS(bound_transformer(both, 2),
                       "transformer_bound: got member 2, wanted one from 0 to 1", Error);
}

TEST_CASE("transformer bound: what it refuses") {
  TransformerOptions options;
  options.layer_norm = false;
  CHECK_THROWS_WITH_AS(bound_transformer(Transformer(options)),
                       "transformer_bound: got a transformer without a Layer Norm, which nothing "
                       "bounds",
                       Error);
  const auto said = [](const Transformer& net) {
    std::string said;
    try {
      bound_transformer(net);
    } catch (const Error& error) {
      said = error.what();
    }
    return said;
  };
  options = {.width = 4, .heads = 1, .hidden = 2, .dtype = DType::f64};
  const Transformer large(options);
  scale_parameter(large, 7, 1e300);
  scale_parameter(large, 11, 1e300);
  CHECK(said(large).starts_with("transformer_bound: got weights so large that a bound is ["));
  // A unit's interval that is no number, though predictions are: 1e320 less all but a little of it.
  const Transformer lost(
      {.length = 1, .width = 4, .heads = 1, .hidden = 1, .blocks = 1, .dtype = DType::f64});
  for (std::size_t p = 7; p < 15; ++p) scale_parameter(lost, p, 0);
  const auto at = [&](std::size_t p) { return lost.layout().view(lost.flat(), p).data<double>(); };
  at(13)[0] = 1;
  const double far = lost.predict(Tensor::full({1, 1}, 1e30, DType::f64)).item();
  at(13)[0] = 0;
  at(3)[0] = at(9)[0] = 1e160;
  at(4)[0] = -std::nextafter(1e160 * std::abs(far), 0.0);
  at(11)[1] = 1e-300;
  at(13)[1] = 1;
  const Tensor out = lost.predict(Tensor::full({1, 1}, far < 0 ? -1e30 : 1e30, DType::f64));
  CHECK(std::isfinite(out.item()));
  CHECK(out.item() > 100);
  CHECK(said(lost).starts_with("transformer_bound: got weights so large that a bound is ["));
  // Of the embedding the bound needs nothing but directions.
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const Transformer net(options);
    net.layout().view(net.flat(), 0).data<double>()[1] = bad;
    CHECK(said(net) ==
          fmt::format("transformer_bound: got {} in 0.weight, wanted finite numbers", bad));
  }
}
