#include "../../nn/net.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../../core/random.h"
#include "../../kernels/gradcheck.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/mse.h"
#include "../bits.h"
#include "../message_of.h"

using namespace keel;

namespace {

constexpr const char* kDeep = "dense(9) layernorm relu dense(7) gelu layernorm(affine=0) dense(2)";
constexpr const char* kResidualSpec =
    "dense(5) gelu residual(layernorm dense(7) silu dense(5)) layernorm residual(gelu) dense(2)";

double mean_of(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double total = 0;
  for (double value : values) total += (value - mean) * (value - mean);
  return total / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("net: parameters, their names, shapes and places") {
  const Net net(kDeep, 3, {.seeds = {5, 6}});
  const auto& entries = net.layout().entries();
  REQUIRE(entries.size() == 8);
  const std::vector<std::pair<std::string, Shape>> wanted = {
      {"0.weight", {9, 3}}, {"0.bias", {9}}, {"1.weight", {9}},    {"1.bias", {9}},
      {"3.weight", {7, 9}}, {"3.bias", {7}}, {"6.weight", {2, 7}}, {"6.bias", {2}}};
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    CHECK(entries[p].name == wanted[p].first);
    CHECK(entries[p].member == wanted[p].second);
    CHECK(entries[p].begin % 16 == 0);
  }
  CHECK(net.layout().view(net.flat(), 0).shape() == Shape{2, 9, 3});
  CHECK(net.layout().view(net.flat(), 1).shape() == Shape{2, 9});
  CHECK(net.parameters_per_member() == 27 + 9 + 9 + 9 + 63 + 7 + 14 + 2);
  CHECK(net.output_width() == 2);
  CHECK(net.widest() == 9);
}

TEST_CASE("net: a residual adds what it was given, and its layers have two numbers") {
  const Net net("dense(5) residual(dense(4) relu dense(5)) relu dense(2)", 3,
                {.seeds = {5, 6}, .dtype = DType::f64});
  std::string names;
  for (const auto& entry : net.layout().entries()) names += entry.name + " ";
  CHECK(names == "0.weight 0.bias 1.0.weight 1.0.bias 1.2.weight 1.2.bias 3.weight 3.bias ");
  const Tensor x = normal({6, 3}, {2, 0}, 1, DType::f64);
  for (std::int64_t s = 0; s < 2; ++s) {
    // The same of nets of its parts.
    const auto part = [&](const char* spec, std::int64_t inputs, std::size_t first) {
      Net made(spec, inputs, {.dtype = DType::f64});
      for (std::size_t p = 0; p < made.layout().entries().size(); ++p)
        copy(made.layout().view(made.flat(), p),
             net.layout().member_view(net.flat(), first + p, s));
      return made;
    };
    const Tensor ahead = part("dense(5)", 3, 0).predict(x);
    const std::vector<double>
        a = ahead.to_vector<double>(),
        b = part("dense(4) relu dense(5)", 5, 2).predict(ahead).to_vector<double>();
    std::vector<double> sum;
    for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(std::max(a[i] + b[i], 0.0));
    const Tensor wanted = part("dense(2)", 5, 6).predict(Tensor::from(sum, {6, 5}));
    CHECK(same_bits(net.member(s).predict(x), wanted));
  }
  CHECK(message_of([] {
          Net({{.kind = LayerKind::dense, .width = 2}, {.kind = LayerKind::add}}, 3);
        }).starts_with("spec: got an end of a residual"));
}

TEST_CASE("net: Kaiming-normal weights, biases N(0, 0.01), gain 1") {
  const Net net("dense(400) layernorm relu dense(300) dense(1)", 50, {.first_sigma_w2 = 1.0});
  const auto values = [&](std::size_t p) {
    return net.layout().view(net.flat(), p).to_vector<double>();
  };
  CHECK(variance_of(values(0)) == doctest::Approx(1.0 / 50).epsilon(0.05));
  CHECK(std::abs(mean_of(values(0))) < 0.005);
  CHECK(variance_of(values(1)) == doctest::Approx(0.01).epsilon(0.25));
  for (double gain : values(2)) CHECK(gain == 1);
  for (double bias : values(3)) CHECK(bias == 0);
  CHECK(variance_of(values(4)) == doctest::Approx(2.0 / 400).epsilon(0.03));
}

TEST_CASE("net: Kaiming-uniform weights have the variance of normal ones, and biases stay normal") {
  for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk}) {
    const Net net("dense(400) relu dense(300) dense(1)", 50,
                  {.parameterisation = parameterisation,
                   .first_sigma_w2 = 1.0,
                   .weights = Distribution::uniform});
    const bool ntk = parameterisation == Parameterisation::ntk;
    for (const auto& [p, fan_in_variance] : {std::pair(0, 1.0 / 50), {2, 2.0 / 400}}) {
      const double variance = ntk ? 1 : fan_in_variance, end = std::sqrt(3 * variance);
      const auto weights = net.layout().view(net.flat(), p).to_vector<double>();
      CHECK(variance_of(weights) == doctest::Approx(variance).epsilon(0.02));
      CHECK(std::abs(mean_of(weights)) < 0.02 * end);
      const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
      CHECK(*least >= -end);
      CHECK(*least < -0.99 * end);
      CHECK(*most <= end * (1 + 1e-7));  // rounded to float32
      CHECK(*most > 0.99 * end);
    }
    const auto biases = net.layout().view(net.flat(), 1).to_vector<double>();
    CHECK(variance_of(biases) == doctest::Approx(ntk ? 1 : 0.01).epsilon(0.25));
    CHECK(*std::max_element(biases.begin(), biases.end()) > std::sqrt(3 * (ntk ? 1 : 0.01)));
  }
}

TEST_CASE("net: a member has the weights, and the outputs, of a net of its own") {
  const Tensor x = normal({11, 3}, {99, 0});
  const Net ensemble(kDeep, 3, {.seeds = {3, 8, 21}});
  const Tensor all = ensemble.predict(x);
  CHECK(all.shape() == Shape{3, 11, 2});
  for (std::int64_t s = 0; s < 3; ++s) {
    const Net alone(kDeep, 3, {.seed = ensemble.options().seeds[s]});
    CHECK(same_bits(ensemble.member(s).flat(), alone.flat()));
    CHECK(same_bits(all[s], alone.predict(x)));
  }
  CHECK(Net("dense(2)", 3, {.members = 2, .seed = 7}).options().seeds ==
        std::vector<std::uint64_t>{7, 8});
}

TEST_CASE("net: set_member, clone and member copy") {
  Net ensemble(kDeep, 3, {.members = 2});
  const Net other(kDeep, 3, {.seed = 77}), before = ensemble.clone();
  ensemble.set_member(1, other);
  CHECK(same_bits(ensemble.member(1).flat(), other.flat()));
  CHECK(same_bits(ensemble.member(0).flat(), before.member(0).flat()));
  CHECK(!same_bits(before.flat(), ensemble.flat()));
  CHECK(message_of([&] { ensemble.set_member(0, Net("dense(2)", 3)); }) ==
        "net: got 1 members of 'dense(2)' of 3 inputs, wanted 1 member of '" + std::string(kDeep) +
            "' of 3");
  CHECK(message_of([&] { ensemble.set_member(2, other); }) ==
        "net: got member 2, wanted one from 0 to 1");
  // The same numbers would be another function.
  const Net ntk(kDeep, 3, {.parameterisation = Parameterisation::ntk});
  const Tensor kept = ensemble.flat().clone();
  CHECK(message_of([&] { ensemble.set_member(0, ntk); }) ==
        "copy_member: got parameters of another net, or another scale");
  CHECK(same_bits(ensemble.flat(), kept));
  CHECK(message_of([&] { other.values(0, 1); }) == "net: got member 1, wanted one from 0 to 0");
  CHECK(message_of([&] { other.values(99); }).starts_with("layout: got parameter 99, wanted one"));
}

TEST_CASE("net: both parameterisations are one function at initialisation") {
  const Tensor x = normal({20, 4}, {1, 0}, 1, DType::f64);
  for (double sigma_b2 : {0.01, 0.0}) {
    NetOptions options{
        .seed = 12, .dtype = DType::f64, .first_sigma_w2 = 1.0, .sigma_b2 = sigma_b2};
    const Net standard("dense(33) relu dense(17) silu dense(1)", 4, options);
    options.parameterisation = Parameterisation::ntk;
    const Net ntk("dense(33) relu dense(17) silu dense(1)", 4, options);
    const auto a = standard.predict(x).to_vector<double>(), b = ntk.predict(x).to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
    CHECK(!same_bits(standard.flat(), ntk.flat()));
  }
}

TEST_CASE("net: layernorm or rmsnorm and relu fused give the same bits, forward and backward") {
  const Tensor x = normal({40, 3}, {4, 0}), y = normal({40, 2}, {4, 1});
  for (const char* spec : {"dense(33) layernorm relu dense(5) layernorm(affine=0) relu dense(2)",
                           "dense(33) layernorm(eps=0.1) relu layernorm gelu dense(2)",
                           "dense(33) rmsnorm relu dense(5) rmsnorm(affine=0) relu dense(2)"}) {
    for (std::int64_t members : {1, 3}) {
      Net net(spec, 3, {.members = members});
      std::vector<Tensor> outputs, gradients;
      std::vector<std::size_t> nodes;
      for (bool fused : {true, false}) {
        net.fuse(fused);
        Tape tape;
        GradientSink sink;
        const std::vector<Var> leaves = net.leaves(tape);
        const Var out = net.forward(x, leaves);
        const Var loss = mse(out, y);
        tape.backward(loss, sink);
        outputs.push_back(out.value());
        for (const Var& leaf : leaves) gradients.push_back(sink[leaf].clone());
        nodes.push_back(tape.nodes());
      }
      CHECK(nodes[0] < nodes[1]);
      CHECK(same_bits(outputs[0], outputs[1]));
      const std::size_t half = gradients.size() / 2;
      for (std::size_t p = 0; p < half; ++p) CHECK(same_bits(gradients[p], gradients[half + p]));
    }
  }
}

TEST_CASE("net: predict in blocks equals forward, for shared and own inputs") {
  Net net("dense(2048) relu dense(1)", 2, {.members = 2, .dtype = DType::f64});
  const std::int64_t n = 2500;  // more than the 1,024 rows of a block
  const Tensor shared = normal({n, 2}, {1, 0}, 1, DType::f64);
  Tensor own = Tensor::empty({2, n, 2}, DType::f64);
  copy(own[0], shared);
  copy(own[1], normal({n, 2}, {1, 1}, 1, DType::f64));
  const auto blocks = net.predict(shared).to_vector<double>();
  const auto blocks_own = net.predict(own).to_vector<double>();
  const auto alone = net.member(1).predict(shared).to_vector<double>();
  std::vector<Var> constants;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    constants.push_back(net.layout().view(net.flat(), p));
  const auto whole = net.forward(shared, constants).value().to_vector<double>();
  const auto whole_own = net.forward(own, constants).value().to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    worst = max_or_nan(worst, std::abs(blocks[i] - whole[i]));
    worst = max_or_nan(worst, std::abs(blocks_own[i] - whole_own[i]));
    if (i >= alone.size()) worst = max_or_nan(worst, std::abs(alone[i - alone.size()] - whole[i]));
  }
  CHECK(worst < 1e-12);
  CHECK(net.predict(Tensor::zeros({0, 2}, DType::f64)).shape() == Shape{2, 0, 1});
}

TEST_CASE("net: gradcheck of a whole net's loss") {
  for (const auto& [spec, parameterisation] : {std::pair{kDeep, Parameterisation::standard},
                                               {kDeep, Parameterisation::ntk},
                                               {kResidualSpec, Parameterisation::ntk}}) {
    for (std::int64_t members : {1, 2}) {
      const Net net(
          spec, 3, {.parameterisation = parameterisation, .members = members, .dtype = DType::f64});
      const Tensor x = normal({6, 3}, {2, 0}, 1, DType::f64);
      const Tensor y = normal({6, 2}, {2, 1}, 1, DType::f64);
      std::vector<Tensor> inputs;
      for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
        inputs.push_back(net.layout().view(net.flat(), p).clone());
      const Gradcheck result = gradcheck(
          [&](std::span<const Var> parameters) { return mse(net.forward(x, parameters), y); },
          inputs);
      INFO(result.where);
      CHECK(result.max_relative_error < 1e-6);
    }
  }
}

TEST_CASE("net: bad input") {
  // 2^64 parameters and a few: they must not be counted as a few.
  CHECK(message_of([] {
          std::string wide;
          for (int i = 0; i < 5; ++i) wide += "dense(2147483647) ";
          Net(wide + "dense(1)", 1);
        }) == "net: layer 2 brings the parameters of 1 members to 2^63 or more");
  const Net one("dense(2)", 3), two("dense(2)", 3, {.members = 2});
  CHECK(message_of([&] {
          one.predict(Tensor::zeros({4, 2}));
        }) == "predict: got x [4, 2], wanted [n, 3]");
  CHECK(message_of([&] {
          one.predict(Tensor::zeros({1, 4, 3}));
        }) == "predict: got x [1, 4, 3], wanted [n, 3]");
  CHECK(message_of([&] {
          two.predict(Tensor::zeros({3, 4, 3}));
        }) == "predict: got x [3, 4, 3], wanted [n, 3] or [2, n, 3]");
  CHECK(message_of([&] {
          one.predict(Tensor::zeros({4, 3}, DType::f64));
        }) == "predict: x is float64, the net is float32: wanted one dtype");
  CHECK(message_of([&] {
          one.forward(Tensor::zeros({4, 3}), {});
        }) == "net: got 0 parameters, wanted 2");
  CHECK(message_of([] { Net("dense(2)", 0); }) == "net: got input width 0, wanted at least 1");
  CHECK(message_of([] { Net("dense(2)", 3, {.members = 0}); }) ==
        "net: got 0 members, wanted at least 1");
  CHECK(message_of([] {
          Net("dense(2)", 3, {.members = 3, .seeds = {1, 2}});
        }) == "net: got 2 seeds for 3 members");
  CHECK(message_of([] { Net("dense(2)", 3, {.sigma_w2 = 0}); }) ==
        "dense: got sigma_w2 0 and sigma_b2 0.01, wanted sigma_w2 > 0 and sigma_b2 >= 0");
  CHECK(message_of([] { Net("dense(2)", 3, {.sigma_b2 = -1}); }) ==
        "dense: got sigma_w2 2 and sigma_b2 -1, wanted sigma_w2 > 0 and sigma_b2 >= 0");
  CHECK(message_of([&] { two.member(2); }) == "net: got member 2, wanted one from 0 to 1");
  for (const char* word : {"layernorm", "rmsnorm", "prelu"}) {
    const Net tail(parse_tail(fmt::format("{} dense(1)", word)), 3, {.members = 2});
    CHECK(message_of([&] {
            tail.predict(Tensor::zeros({4, 3}));
          }) ==
          fmt::format("predict: got x [4, 3], wanted [2, n, 3], as each member's parameters of "
                      "'{}' see rows of their own",
                      word));
    CHECK(tail.predict(Tensor::zeros({2, 4, 3})).shape() == Shape{2, 4, 1});
  }
  const Net bare(parse_tail("layernorm(affine=0) dense(1)"), 3, {.members = 2});
  CHECK(bare.predict(Tensor::zeros({4, 3})).shape() == Shape{2, 4, 1});
}
