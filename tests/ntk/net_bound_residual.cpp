// A residual behind a norm is bounded as what it is, a sum; within one, no norm bounds what passes
// it by, but what is added.
#include <doctest/doctest.h>

#include "../message_of.h"
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
        "dense(3) layernorm residual(dense(4) prelu(per_unit=1) dense(3)) prelu dense(1)",
        "dense(4) residual(layernorm relu dense(4)) layernorm relu dense(1)",
        "dense(2) tanh residual(dense(3) relu dense(2)) dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 3, ++seed);
    const NetBound bound = bound_net(net);
    REQUIRE(bound.bounded);
    check_ends(net, bound, 1.6);
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
