// A residual behind a norm is bounded as what it is, a sum; within one, no norm bounds what passes
// it by, but what is added.
#include <doctest/doctest.h>

#include <functional>

#include "../../ntk/norm_after.h"
#include "../nn/message_of.h"
#include "dual_problem.h"

namespace keel {
namespace {

// All weights and biases of the body, the parameters [first, last), times `factor`.
void scale_parameters(const Net& net, std::size_t first, std::size_t last, double factor) {
  for (std::size_t p = first; p < last; ++p) {
    Vector values = net.values(p);
    for (double& value : values) value *= factor;
    const Tensor home = net.layout().member_view(net.flat(), p, 0);
    copy(home, Tensor::from(values, home.shape()));
  }
}

// The parameters of `from` over those of `into`, without the ones [first, last).
void copy_without(const Net& into, const Net& from, std::size_t first, std::size_t last) {
  for (std::size_t p = 0, q = 0; p < from.layout().entries().size(); ++p) {
    if (p >= first && p < last) continue;
    const Tensor home = into.layout().member_view(into.flat(), q++, 0);
    copy(home, from.layout().member_view(from.flat(), p, 0));
  }
}

TEST_CASE("net_bound: a residual that adds nothing leaves the interval as it is") {
  for (const std::string norm : {"layernorm", "rmsnorm(affine=0)", "relu layernorm", "tanh"})
    for (const std::string behind : {"dense(1)", "relu dense(2)"})
      for (const std::string phi : {"relu", "gelu", "tanh", "leakyrelu"}) {
        const std::string ahead = "dense(6) " + norm + " ";
        const Net net =
            random_net(ahead + "residual(dense(5) " + phi + " dense(6)) " + behind, 3, 4);
        const Net plain(ahead + behind, 3, {.dtype = DType::f64});
        CAPTURE(spec_text(net.spec()));
        const std::size_t first = plain.layout().entries().size() - 2;
        scale_parameters(net, first, first + 4, 0);
        copy_without(plain, net, first, first + 4);
        const NetBound bound = bound_net(net), wanted = bound_net(plain);
        REQUIRE(bound.bounded);
        CHECK(bound.word == wanted.word);
        CHECK(bound.rank == wanted.rank);
        for (std::size_t i = 0; i < wanted.outputs.size(); ++i) {
          const Interval of = bound.outputs[i], same = wanted.outputs[i];
          const double size = same.high - same.low;
          CHECK(of.high - same.high < 0.001 * size);
          CHECK(same.low - of.low < 0.001 * size);
        }
      }
}

TEST_CASE("net_bound: behind a norm no input passes a residual's bound; nor is it far from them") {
  std::uint64_t seed = 0;
  for (const char* spec :
       {"dense(3) layernorm residual(dense(4) relu dense(3)) dense(1)",
        "dense(4) layernorm residual(relu dense(4)) dense(2)",
        "dense(4) rmsnorm relu residual(dense(3) gelu dense(4)) dense(1)",
        "dense(3) layernorm residual(dense(3) relu dense(3)) residual(dense(3) relu dense(3)) "
        "dense(1)",
        "dense(3) layernorm residual(dense(4) silu dense(4) relu dense(3)) relu dense(1)",
        "dense(3) layernorm residual(identity dense(3)) dense(2) leakyrelu dense(1)",
        "dense(4) layernorm residual(dense(4) tanh) dense(1)",
        "dense(4) residual(layernorm relu dense(4)) layernorm relu dense(1)",
        "dense(2) tanh residual(dense(3) relu dense(2)) dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 3, ++seed);
    const NetBound bound = bound_net(net);
    REQUIRE(bound.bounded);
    for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
      const Interval found = found_ahead(net, i), of = bound.outputs[i];
      CAPTURE(found.high);
      CAPTURE(found.low);
      CAPTURE(of.high);
      CAPTURE(of.low);
      CHECK(of.low <= found.low);
      CHECK(found.high <= of.high);
      CHECK(of.high - of.low < 1.6 * (found.high - found.low));
    }
  }
}

TEST_CASE("net_bound: a tail with residuals is the net behind its norm") {
  for (const char* spec :
       {"dense(5) layernorm(affine=0, eps=0) residual(dense(4) relu dense(5)) relu dense(2)",
        "dense(5) layernorm(affine=0, eps=0) relu residual(gelu dense(5) silu) dense(2)",
        "dense(5) layernorm(affine=0, eps=0) residual(dense(5)) residual(relu) dense(2)"}) {
    CAPTURE(spec);
    Net net = random_net(spec, 3, 2);
    net.fuse(false);  // a norm's output without its relu
    const Tail tail = tail_sum_of(net, false)[0].tail;
    const auto size = static_cast<double>(tail.set.width);
    for (std::uint64_t draw = 0; draw < 10; ++draw) {
      const Vector x = draws(3, draw);
      const Tensor input = Tensor::from(x, {1, 3});
      std::vector<Var> constants;
      for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
        constants.push_back(net.layout().view(net.flat(), p));
      Vector u = net.forward(input, constants, 2).value().to_vector<double>();
      for (double& value : u) value /= std::sqrt(size);
      const Vector wanted = net.predict(input).to_vector<double>(), got = tail_at(tail, u);
      REQUIRE(got.size() == wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-10));
    }
  }
}

TEST_CASE("norm_set: of a map that may be off, its span only where that is told apart") {
  Affine map{6, 2, draws(12, 1), draws(6, 2)};
  const NormSet ball = every_normed(2, false),
                given = normed_after_dense(map.weight, map.bias, 2, 1e-5),
                same = normed_after(map, ball, 1e-15, 1e-5, true);
  CHECK(given.rank == 3);
  CHECK(same.rank == 3);
  CHECK(same.basis == given.basis);
  CHECK(same.inner >= given.inner);
  CHECK(same.turned > given.turned);
  CHECK(normed_after(map, ball, 1e-9, 1e-5, true).whole);
  for (std::size_t i = 0; i < 12; i += 2) map.weight[i] = 0;
  CHECK(normed_after(map, ball, 1e-15, 1e-5, true).rank == 2);
  map.weight_sizes.assign(12, 1);  // of what has cancelled
  CHECK(normed_after(map, ball, 1e-15, 1e-5, true).whole);
}

// A norm's output after the first `layers` of the net, in the coordinates of a set.
Vector of_norm(const Net& net, const Vector& x, std::size_t layers, const NormSet& set) {
  std::vector<Var> constants;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    constants.push_back(net.layout().view(net.flat(), p));
  const Tensor input = Tensor::from(x, {1, static_cast<std::int64_t>(x.size())});
  return coordinates(set, net.forward(input, constants, layers).value().to_vector<double>());
}

// The sum at x, which comes to each of its sets; `norms`: the layers that end with them.
Vector value_of(const TailSum& sum, const Net& net, const Vector& x,
                std::vector<std::size_t>& norms) {
  Vector total;
  for (const TailTerm& term : sum) {
    Vector at;
    if (term.below) {
      at = value_of(*term.below, net, x, norms);
    } else {
      const NormSet& set = term.tail.set;
      at = of_norm(net, x, norms.front(), set);
      norms.erase(norms.begin());
      CHECK(dot(at, at) <= 1 + 1e-9);
      CHECK(dot(at, at) >= set.inner * set.inner - 1e-9);
      if (set.half) CHECK(at.back() >= set.last.low - 1e-9);
      if (set.half) CHECK(at.back() <= set.last.high + 1e-9);
      if (!set.side.empty()) CHECK(dot(at, set.side) >= -set.beyond - 1e-12);
    }
    const Vector value = tail_at(term.tail, at);
    total.resize(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) total[i] += value[i];
  }
  return total;
}

TEST_CASE("tail_sum: at the sets' points that an input comes to, the sum is the net") {
  struct Case {
    std::string spec;
    std::vector<std::size_t> norms;  // layers up to each, it included
    std::vector<std::int64_t> ranks;
  };
  for (const Case& of :
       {Case{"dense(7) layernorm(affine=0) residual(layernorm(affine=0) dense(4) relu dense(7)) "
             "dense(2)",
             {2, 4},
             {3, 3}},  // no bias, and so no dimension more
        Case{"dense(7) layernorm(affine=0) dense(8) residual(dense(9) rmsnorm(affine=0) relu "
             "dense(8)) dense(2)",
             {2, 6},
             {3, 4}},
        Case{"dense(5) layernorm(affine=0, eps=0) relu residual(layernorm(affine=0) gelu "
             "dense(5)) dense(5) relu residual(dense(4) rmsnorm(affine=0) dense(5)) relu dense(2)",
             {2, 5, 13},
             {3, 5, 4}},
        Case{"dense(5) rmsnorm(affine=0) residual(dense(4) rmsnorm(affine=0) relu "
             "layernorm(affine=0) relu dense(5)) residual(dense(3) tanh dense(5)) dense(2)",
             {2, 7},
             {3, 4}}}) {
    CAPTURE(of.spec);
    Net net = random_net(of.spec, 2, 7);
    net.fuse(false);  // a norm's output without its relu
    for (const bool narrow : {true, false}) {
      const TailSum sum = tail_sum_of(net, narrow);
      CHECK(sets_of(sum) == std::ssize(of.norms));
      for (std::uint64_t draw = 0; draw < 10; ++draw) {
        Vector x = draws(2, draw);
        for (double& value : x) value *= std::pow(10, static_cast<double>(draw) - 3);
        std::vector<std::size_t> norms = of.norms;
        const Vector wanted = net.predict(Tensor::from(x, {1, 2})).to_vector<double>(),
                     got = value_of(sum, net, x, norms);
        REQUIRE(got.size() == wanted.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-9));
      }
    }
    std::vector<std::int64_t> ranks;
    const std::function<void(const TailSum&)> list = [&](const TailSum& sum) {
      for (const TailTerm& term : sum)
        term.below ? list(*term.below) : ranks.push_back(term.tail.set.rank);
    };
    list(tail_sum_of(net));
    CHECK(ranks == of.ranks);
  }
}

TEST_CASE("net_bound: a norm of a norm's linear map keeps its half space, and nearly its length") {
  // Its bias is all that adds a dimension, of which both ends are known.
  const Net net =
      random_net("dense(16) layernorm residual(dense(20) layernorm relu dense(16)) dense(1)", 3, 5);
  const NormSet set = tail_sum_of(net).back().tail.set;
  CHECK(set.rank == 5);
  CHECK(set.side.size() == 5);
  CHECK(set.beyond < 1e-6);
  CHECK(set.last.low > 0);
  CHECK(set.last.high < 1);
  CHECK(set.inner > 0.9);
  const Interval narrow = bound_net(net).outputs[0],
                 whole = bound_net(net, {.narrow = false}).outputs[0], found = found_ahead(net, 0);
  CHECK(found.high <= narrow.high);
  CHECK(found.low >= narrow.low);
  CHECK(narrow.high - narrow.low < 0.5 * (whole.high - whole.low));
  CHECK(narrow.high - narrow.low < 2 * (found.high - found.low));
}

TEST_CASE("net_bound: behind a norm, norms within residuals are bounded by themselves") {
  std::uint64_t seed = 20;
  for (const char* spec :
       {"dense(4) layernorm residual(layernorm relu dense(4)) dense(1)",
        "dense(4) layernorm residual(dense(6) layernorm gelu dense(4)) dense(2)",
        "dense(4) rmsnorm relu residual(rmsnorm dense(4)) dense(1)",
        "dense(4) layernorm residual(layernorm relu dense(4)) residual(layernorm relu dense(4)) "
        "dense(1)",
        "dense(4) tanh residual(layernorm relu dense(4)) dense(1)",
        "dense(4) layernorm residual(layernorm dense(4)) relu dense(1)",
        "dense(4) layernorm residual(layernorm dense(4)) dense(3) gelu dense(3) relu dense(1)",
        "dense(4) layernorm residual(layernorm dense(4)) residual(relu dense(4)) dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, ++seed);
    const NetBound bound = bound_net(net);
    REQUIRE(bound.bounded);
    CHECK(bound.word == 2);
    CHECK(bound.sets == std::ranges::count_if(net.spec(), [](const LayerSpec& layer) {
                          return normalises_rows(layer.kind);
                        }) + (net.spec()[1].kind == LayerKind::tanh));
    for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
      const Interval found = found_ahead(net, i), of = bound.outputs[i];
      CAPTURE(found.high);
      CAPTURE(found.low);
      CAPTURE(of.high);
      CAPTURE(of.low);
      CHECK(of.low <= found.low);
      CHECK(found.high <= of.high);
      CHECK(of.high - of.low < 12 * (found.high - found.low));  // of some use
    }
  }
}

TEST_CASE("net_bound: a residual with a norm that adds nothing leaves the interval as it is") {
  for (const std::string behind : {"dense(1)", "dense(5) dense(2)"}) {
    const std::string ahead = "dense(6) layernorm relu ";
    const Net net = random_net(ahead + "residual(rmsnorm relu dense(6)) " + behind, 3, 4);
    const Net plain(ahead + behind, 3, {.dtype = DType::f64});
    CAPTURE(spec_text(net.spec()));
    scale_parameters(net, 4, 7, 0);  // a gain, weight and bias
    copy_without(plain, net, 4, 7);
    const NetBound bound = bound_net(net), wanted = bound_net(plain);
    CHECK(bound.sets == 2);
    for (std::size_t i = 0; i < wanted.outputs.size(); ++i) {
      const Interval of = bound.outputs[i], same = wanted.outputs[i];
      const double size = same.high - same.low;
      CHECK(std::abs(of.high - same.high) < 1e-6 * size);
      CHECK(std::abs(of.low - same.low) < 1e-6 * size);
    }
  }
}

TEST_CASE("net_bound: what a residual passes by bounds nothing") {
  for (const char* spec : {"dense(4) residual(layernorm relu dense(4)) dense(1)",
                           "dense(4) residual(tanh dense(4) rmsnorm) relu dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, 3);
    CHECK(bounding_layer(net.spec()) == net.spec().size());
    CHECK(!bound_net(net).bounded);
    CHECK(
        message_of([&] { tail_sum_of(net); })
            .ends_with(
                "wanted a layernorm, an rmsnorm, a tanh or a sigmoid that no residual passes by"));
  }
  // A tanh behind it is one more chance.
  for (const char* spec : {"dense(4) layernorm dense(4) residual(layernorm dense(4)) tanh dense(1)",
                           "dense(4) tanh residual(layernorm dense(4)) tanh dense(1)"}) {
    const NetBound bound = bound_net(random_net(spec, 2, 3));
    CHECK(bound.bounded);
    CHECK(bound.kind == LayerKind::tanh);
  }
  const Net last = random_net("dense(4) residual(layernorm relu dense(4)) rmsnorm dense(1)", 2, 3);
  CHECK(bound_net(last).word == 6);
}

}  // namespace
}  // namespace keel
