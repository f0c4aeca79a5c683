// Norms within residuals behind another norm: a net is a sum of tails, each of a set of its own.
#include <doctest/doctest.h>

#include <functional>

#include "../../ntk/norm_after.h"
#include "naive_tail.h"

namespace keel {
namespace {

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
  const NetBound narrow = bound_net(net), whole = bound_net(net, {.narrow = false});
  check_ends(net, narrow, 2);
  const auto width = [](const NetBound& bound) {
    return bound.outputs[0].high - bound.outputs[0].low;
  };
  CHECK(width(narrow) < 0.5 * width(whole));
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
        "dense(4) layernorm residual(layernorm elu(alpha=2) dense(4)) dense(3) selu dense(1)",
        "dense(4) layernorm residual(layernorm dense(4)) residual(relu dense(4)) dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, ++seed);
    const NetBound bound = bound_net(net);
    REQUIRE(bound.bounded);
    CHECK(bound.word == 2);
    CHECK(bound.sets == std::ranges::count_if(net.spec(), [](const LayerSpec& layer) {
                          return normalises_rows(layer.kind);
                        }) + (net.spec()[1].kind == LayerKind::tanh));
    check_ends(net, bound, 12);  // of some use
  }
}

TEST_CASE("net_bound: of several sets, weights too large for double are refused, or bounded") {
  const Net net = random_net("dense(6) layernorm residual(layernorm relu dense(6)) dense(1)", 2, 3);
  const Tensor home = net.layout().member_view(net.flat(), 2, 0);  // the first norm's gain
  for (const double gain : {1e100, 1e160, 1e300}) {
    copy(home, Tensor::from(Vector(6, gain), home.shape()));
    try {
      const Interval of = bound_net(net).outputs[0];
      CHECK(of.high - of.low >= gain);
      CHECK(std::isfinite(of.high - of.low));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("so large") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace keel
