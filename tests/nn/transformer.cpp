// The transformer: against a plain one of the oracle's formulas, its derivatives, its members, and
// what it may depend on.
#include "../../nn/transformer_step.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/max_or_nan.h"
#include "../../core/random.h"
#include "../../kernels/gradcheck.h"
#include "../bits.h"
#include "../gpu.h"
#include "../message_of.h"
#include "../norm_places.h"
#include "../oracle.h"
#include "small_transformer.h"

using namespace keel;
using namespace keel::test;

namespace {

// A member by the oracle's formulas, x [n, length].
std::vector<double> plain(const Transformer& net, std::int64_t member, const Tensor& x) {
  const TransformerOptions& o = net.options();
  std::size_t at = 0;
  const auto next = [&] {
    return oracle::Array(net.layout().member_view(net.flat(), at++, member));
  };
  const auto dense = [&](const oracle::Array& rows) {
    const oracle::Array weight = next(), bias = next();
    return oracle::dense(rows, weight, bias);
  };
  oracle::Array values(Shape{x.elements(), 1});
  values.v = x.to_vector<double>();
  oracle::Array h = dense(values);
  const oracle::Array places = next();
  for (std::size_t i = 0; i < h.v.size(); ++i) h.v[i] += places.v[i % places.v.size()];
  const auto norm = [&](bool there, const oracle::Array& rows) {
    if (!there) return rows;
    const oracle::Array gain = next();
    if (!o.norms.centred) return oracle::rms_norm(rows, &gain, 0x1p-23);
    const oracle::Array bias = next();
    return oracle::layer_norm(rows, &gain, &bias, 1e-5);
  };
  h = norm(o.norms.embedding, h);
  for (std::int64_t block = 0; block < o.blocks; ++block) {
    const oracle::Array mixed =
        oracle::attention(dense(norm(o.norms.blocks, h)), o.length, o.heads);
    h = oracle::add(h, dense(mixed));
    const oracle::Array hidden = oracle::relu(dense(norm(o.norms.blocks, h)));
    h = oracle::add(h, dense(hidden));
  }
  return dense(norm(o.norms.last, h)).v;
}

}  // namespace

TEST_CASE("transformer: agrees with a plain one") {
  for (const TransformerNorms& norms : all_norms())
    for (const DType dtype : {DType::f64, DType::f32}) {
      CAPTURE(places_of(norms));
      TransformerOptions options = small(norms, dtype);
      options.seeds = {3, 8};
      const Transformer net(options);
      shake_norms(net, 77);
      const Tensor x = normal({2, 5, 4}, {1, 0}, 3, dtype);
      const Tensor got = net.predict(x);
      REQUIRE(got.shape() == x.shape());
      const double tolerance = dtype == DType::f64 ? 1e-13 : 1e-5;
      for (std::int64_t s = 0; s < 2; ++s)
        CHECK(difference(got[s].to_vector<double>(), plain(net, s, x[s])) <= tolerance);
    }
}

TEST_CASE("transformer: derivatives of all parameters, and of the sequence") {
  for (const TransformerNorms& norms : all_norms()) {
    CAPTURE(places_of(norms));
    const Transformer net(small(norms));
    std::vector<Tensor> inputs = {normal({2, 4}, {1, 0}, 1, DType::f64)};
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      inputs.push_back(net.layout().view(net.flat(), p).clone());
    const Gradcheck checked = gradcheck(
        [&](std::span<const Var> all) { return net.forward(all[0], all.subspan(1)); }, inputs);
    CAPTURE(checked.where);
    CHECK(checked.max_relative_error <= 1e-7);
  }
}

TEST_CASE("transformer: what it is drawn from") {
  const Transformer net({.width = 128, .hidden = 512, .blocks = 1, .seeds = {4}});
  // Embedding, places, Layer Norm, four dense layers, the last.
  const std::vector<double> deviations = {1,   0.1,
                                          1,   0,
                                          0,   1 / std::sqrt(128.0),
                                          0.1, 1 / std::sqrt(128.0),
                                          0.1, 1 / std::sqrt(128.0),
                                          0.1, std::sqrt(2 / 512.0),
                                          0.1, 1 / std::sqrt(128.0),
                                          0.1};
  REQUIRE(net.layout().entries().size() == deviations.size());
  for (std::size_t p = 0; p < deviations.size(); ++p) {
    CAPTURE(net.layout().entries()[p].name);
    const std::vector<double> values = net.layout().view(net.flat(), p).to_vector<double>();
    double squares = 0;
    for (double value : values) squares += (value - (p == 3)) * (value - (p == 3));
    const double n = static_cast<double>(values.size());
    CHECK(std::sqrt(squares / n) == doctest::Approx(deviations[p]).epsilon(3 / std::sqrt(n)));
  }
}

TEST_CASE("transformer: members are those of their seeds, and of no other's data") {
  TransformerOptions options = small({}, DType::f32);
  options.seeds = {5, 6};
  const Transformer both(options);
  options.seeds = {6};
  const Transformer second(options);
  const Tensor x = normal({2, 3, 4}, {1, 0}), y = normal({2, 3, 4}, {2, 0});
  CHECK(difference(both.predict(x)[1].to_vector<double>(),
                   second.predict(x[1]).to_vector<double>()) <= 1e-6);
  CHECK(same_bits(both.member(1).flat(), second.flat()));
  CHECK(both.member(1).options().seeds == options.seeds);
  CHECK(message_of([&] { both.member(2); }) == "transformer: got member 2, wanted one from 0 to 1");
  const std::vector<Tensor> of_both = gradients_of(both, x, y);
  const std::vector<Tensor> of_second = gradients_of(second, x[1], y[1]);
  for (std::size_t p = 1; p < of_both.size(); ++p)
    CHECK(difference(of_both[p][1].to_vector<double>(), of_second[p].to_vector<double>()) <= 1e-5);
}

TEST_CASE("transformer: a prediction knows nothing of what comes after it") {
  const Transformer net(small({.embedding = false}));
  const Tensor x = normal({1, 4}, {1, 0}, 1, DType::f64);
  const std::vector<double> before = net.predict(x).to_vector<double>();
  for (std::int64_t changed = 0; changed < 4; ++changed) {
    const Tensor other = x.clone();
    other.data<double>()[changed] += 1;
    const std::vector<double> after = net.predict(other).to_vector<double>();
    for (std::int64_t t = 0; t < 4; ++t)
      CHECK((after[static_cast<std::size_t>(t)] != before[static_cast<std::size_t>(t)]) ==
            (t >= changed));
  }
}

TEST_CASE("transformer: bounded by a norm that nothing passes by, grows with others or none") {
  for (const TransformerNorms& norms : all_norms()) {
    CAPTURE(places_of(norms));
    const Transformer net(small(norms));
    const auto largest = [&](double size) {
      double most = 0;
      for (double value : net.predict(Tensor::full({1, 4}, size, DType::f64)).to_vector<double>())
        most = max_or_nan(most, std::abs(value));
      return most;
    };
    CHECK(largest(1e8) / largest(1e4) ==
          doctest::Approx(norms.bound_all() ? 1 : 1e4).epsilon(0.01));
    if (norms.bound_all()) CHECK(std::isfinite(largest(1e150)));
  }
}

TEST_CASE("transformer: what it refuses") {
  const auto refused = [](auto change) {
    TransformerOptions options = small();
    change(options);
    return message_of([&] { const Transformer net(options); });
  };
  using Options = TransformerOptions;
  CHECK(refused([](Options& o) { o.heads = 4; }) ==
        "transformer: got width 6 and 4 heads, wanted a multiple of the heads");
  CHECK(refused([](Options& o) { o.hidden = 0; }) ==
        "transformer: got hidden 0, wanted at least 1");
  CHECK(refused([](Options& o) { o.length = 1025; }) ==
        "transformer: got length 1025, wanted at most 1024");
  CHECK(refused([](Options& o) {
          o.width = 2050;
          o.heads = 2;
        }) == "transformer: got width 2050 and 2 heads, wanted heads at most 1024 wide");
  CHECK(refused([](Options& o) { o.seeds.clear(); }) ==
        "transformer: got no seeds, wanted one a member");

  Transformer net(small());
  const auto predicted = [&](const Tensor& x) { return message_of([&] { net.predict(x); }); };
  CHECK(predicted(Tensor::zeros({2, 3}, DType::f64)) == "transformer: got x [2, 3], wanted [n, 4]");
  CHECK(predicted(Tensor::zeros({2, 4})) ==
        "transformer: x is float32, the transformer is float64: wanted one dtype");
  TransformerOptions two = small();
  two.seeds = {1, 2};
  Transformer pair(two);
  CHECK(message_of([&] {
          pair.predict(Tensor::zeros({2, 4}, DType::f64));
        }) == "transformer: got x [2, 4], wanted 2 members of [n, 4]");
  CHECK(message_of([&] {
          pair.forward(Tensor::zeros({2, 3, 4}, DType::f64), {});
        }) == "transformer: got 0 parameters, wanted 23");

  CHECK(message_of([&] { const TransformerStep none(net, 0); }) ==
        "transformer: got steps of 0 sequences, wanted at least 1");
  const Tensor before = pair.flat().clone();
  TransformerStep step(pair, 3);
  const Tensor right = Tensor::zeros({2, 3, 4}), wrong = Tensor::zeros({3, 4});
  CHECK(message_of([&] { step.run(wrong, right); }) ==
        "transformer: got x [3, 4], wanted [2, 3, 4]");
  CHECK(message_of([&] { step.run(right, wrong); }) ==
        "transformer: got y [3, 4], wanted [2, 3, 4]");
  CHECK(same_bits(pair.flat(), before));
}

TEST_CASE("transformer: the CPU and the GPU agree") {
  if (!gpu_here("transformer: the CPU and the GPU agree")) return;
  for (const TransformerNorms& norms : all_norms()) {
    TransformerOptions options = small(norms, DType::f32);
    options.seeds = {5, 6};
    const Transformer here(options);
    options.device = Device::cuda();
    const Transformer there(options);
    const Tensor x = normal({2, 3, 4}, {1, 0}), y = normal({2, 3, 4}, {2, 0});
    const std::vector<Tensor> host = gradients_of(here, x, y);
    const Tensor device_x = x.to(options.device), device_y = y.to(options.device);
    const std::vector<Tensor> device = gradients_of(there, device_x, device_y);
    const std::vector<Tensor> again = gradients_of(there, device_x, device_y);
    for (std::size_t p = 0; p < host.size(); ++p) {
      CHECK(difference(device[p].to_vector<double>(), host[p].to_vector<double>()) <= 1e-5);
      CHECK(same_bits(device[p], again[p]));
    }
  }
}
