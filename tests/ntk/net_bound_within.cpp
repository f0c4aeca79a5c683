// A bound over |x| <= within alone: of nets that have no other, and of those that have.
#include <doctest/doctest.h>

#include <limits>

#include "../message_of.h"
#include "../sanitized.h"
#include "dual_problem.h"

namespace keel {
namespace {

// What a search finds of |x| <= within; of one feature also 2001 points that are evenly apart.
Interval found_within(const Net& net, double within) {
  Interval found = found_ahead(
      net, 0, {.nearest = 1e-3 * within, .farthest = within, .directions = 64, .steps = 100});
  for (int i = -1000; i <= 1000 && net.input_width() == 1; ++i) {
    const double value = net.predict(Tensor::from(Vector{within * i / 1000}, {1, 1})).item();
    found = {std::min(found.low, value), std::max(found.high, value)};
  }
  return found;
}

TEST_CASE("net_bound within: of a linear net exactly what its rows' lengths say") {
  const Net net = random_net("dense(5) dense(2)", 3, 7);
  const Vector w1 = net.values(0), b1 = net.values(1), w2 = net.values(2), b2 = net.values(3);
  for (const double within : {1e-6, 1.0, 250.0}) {
    const NetBound bound = bound_net(net, {.within = within});
    REQUIRE(bound.bounded);
    CHECK(bound.word == 0);
    CHECK(bound.width == 3);
    CHECK(bound.rank == 3);
    CHECK(bound.activations == 0);
    for (std::size_t o = 0; o < 2; ++o) {
      double middle = b2[o], squares = 0;
      for (std::size_t h = 0; h < 5; ++h) middle += w2[o * 5 + h] * b1[h];
      for (std::size_t i = 0; i < 3; ++i) {
        double weight = 0;
        for (std::size_t h = 0; h < 5; ++h) weight += w2[o * 5 + h] * w1[h * 3 + i];
        squares += weight * weight;
      }
      const double reach = within * std::sqrt(squares);
      CHECK(bound.outputs[o].high >= middle + reach);
      CHECK(bound.outputs[o].low <= middle - reach);
      CHECK(bound.outputs[o].high - middle - reach <= 1e-7 * (std::abs(middle) + reach));
      CHECK(middle - reach - bound.outputs[o].low <= 1e-7 * (std::abs(middle) + reach));
    }
  }
}

TEST_CASE("net_bound within: nothing in the ball leaves the interval, nor is that far from it") {
  struct Case {
    const char* spec;
    std::int64_t features;
    double loose;  // the interval's width, at most, over what was found
  };
  for (const Case& of :
       {Case{"dense(24) relu dense(1)", 3, 1.3}, Case{"dense(24) relu dense(1)", 1, 1.5},
        Case{"dense(16) relu dense(16) relu dense(1)", 2, 2.2},
        Case{"dense(16) gelu dense(16) silu dense(1)", 2, 2},
        Case{"dense(16) leakyrelu dense(16) prelu(per_unit=1) dense(1)", 2, 2.2},
        Case{"dense(16) tanh dense(16) tanh dense(1)", 2, 2.5},
        Case{"dense(16) residual(relu dense(16)) relu dense(1)", 2, 2.5},
        Case{"dense(16) residual(layernorm relu dense(16)) dense(1)", 2, 4},
        Case{"dense(16) layernorm relu dense(1)", 2, 2},
        Case{"dense(16) dense(8) rmsnorm relu dense(1)", 2, 2}})
    for (const double within : {0.1, 1.0, 30.0}) {
      CAPTURE(of.spec);
      CAPTURE(within);
      const Net net = random_net(of.spec, of.features, 21);
      NetBoundOptions options;
      options.within = within;
      options.pieces = test::kSanitized ? 0 : 8;
      const Interval proved = bound_net(net, options).outputs[0], found = found_within(net, within);
      CAPTURE(proved.low);
      CAPTURE(proved.high);
      CAPTURE(found.low);
      CAPTURE(found.high);
      CHECK(proved.low <= found.low);
      CHECK(proved.high >= found.high);
      CHECK(proved.high - proved.low <= of.loose * (found.high - found.low));
    }
}

TEST_CASE("net_bound within: of hardly anything it is f(0), also through a norm") {
  for (const char* spec :
       {"dense(16) relu dense(16) gelu dense(1)", "dense(16) tanh dense(1)",
        "dense(16) layernorm relu dense(1)", "dense(16) rmsnorm relu dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 3, 5);
    const double at_0 = net.predict(Tensor::zeros({1, 3}, DType::f64)).item();
    const Interval of = bound_net(net, {.within = 1e-9}).outputs[0];
    CHECK(of.low <= at_0);
    CHECK(of.high >= at_0);
    CHECK(of.high - of.low < 1e-3);
  }
}

// What the norm of W x + b gives, in the coordinates of the set.
Vector first_norm_of(const Net& net, const NormSet& set, const Vector& x) {
  const Vector w = net.values(0);
  Vector z = net.values(1);
  for (std::size_t i = 0; i < z.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) z[i] += w[i * x.size() + j] * x[j];
  const auto n = static_cast<double>(z.size());
  double mean = 0, squares = 0;
  for (const double value : z) mean += set.centred ? value / n : 0;
  for (double& value : z) value -= mean;
  for (const double value : z) squares += value * value / n;
  for (double& value : z) value /= std::sqrt(squares + net.spec()[1].eps);
  return coordinates(set, z);
}

TEST_CASE("net_bound within: what a norm gives is in its set, and on the quadric at the edge") {
  for (const char* spec :
       {"dense(9) layernorm(affine=0) dense(1)", "dense(9) layernorm(affine=0, eps=1) dense(1)",
        "dense(7) rmsnorm(affine=0) dense(1)"})
    for (const double within : {0.01, 1.0, 100.0}) {
      CAPTURE(spec);
      CAPTURE(within);
      const Net net = random_net(spec, 3, 17);
      const NormSet set = first_tail(*tail_sum_within(net, within)).set;
      REQUIRE(set.half);
      REQUIRE(set.rank == 4);
      REQUIRE(set.quadric.size() == 16);
      const auto form_at = [&](const Vector& u) {
        double form = 0;
        for (std::size_t a = 0; a < 4; ++a)
          for (std::size_t b = 0; b < 4; ++b) form += u[a] * set.quadric[a * 4 + b] * u[b];
        return form;
      };
      for (std::uint64_t draw = 0; draw < 200; ++draw) {
        Vector x = draws(3, draw);
        const double length = (draw % 2 == 0 ? 1 : 0.5) * within / std::sqrt(dot(x, x));
        for (double& value : x) value *= length;
        const Vector u = first_norm_of(net, set, x);
        CHECK(dot(u, u) <= 1 + 1e-12);
        CHECK(std::sqrt(dot(u, u)) >= set.inner);
        CHECK(u.back() >= set.last.low);
        CHECK(u.back() <= set.last.high);
        const auto share = [&](const Vector& of) { return form_at(of) / (of.back() * of.back()); };
        CHECK(share(u) >= 0);
        // As far on again, and it is outside; at the edge it is next to nothing within.
        for (double& value : x) value *= draw % 2 == 0 ? 2 : 4;
        const double outside = share(first_norm_of(net, set, x));
        CHECK(outside < 0);
        if (draw % 2 == 0) CHECK(share(u) <= -1e-3 * outside);
      }
    }
}

TEST_CASE("net_bound within: no looser than over all inputs, and as those where it tells nothing") {
  for (const char* spec : {"dense(8) layernorm relu dense(8) relu dense(1)",
                           "dense(8) tanh dense(1)", "dense(8) sigmoid dense(8) relu dense(1)"})
    for (const double within : {1.0, 1e4}) {
      CAPTURE(spec);
      const Net net = random_net(spec, 2, 9);
      const NetBound all = bound_net(net), some = bound_net(net, {.within = within});
      CHECK(some.outputs[0].low >= all.outputs[0].low);
      CHECK(some.outputs[0].high <= all.outputs[0].high);
      CHECK((within > 1 || some.largest() < 0.99 * all.largest()));
    }
  for (const char* spec :
       {"dense(8) relu dense(8) layernorm relu dense(1)",
        "dense(8) layernorm dense(8) layernorm relu dense(1)", "dense(2) layernorm relu dense(1)",
        "dense(8) residual(relu dense(8)) layernorm dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 4, 9);
    const Interval all = bound_net(net).outputs[0],
                   some = bound_net(net, {.within = 0.1}).outputs[0];
    CHECK(all.low == some.low);
    CHECK(all.high == some.high);
    CHECK(!tail_sum_within(net, 0.1));
  }
  // A norm stands ahead of the residual, and a tanh behind it: x does not get by.
  CHECK(!tail_sum_within(
      random_net("dense(8) relu layernorm residual(layernorm relu dense(8)) tanh dense(1)", 2, 3),
      1));
}

TEST_CASE("net_bound within: a tail is bounded by what enters it") {
  for (const char* spec : {"relu dense(1)", "tanh dense(1)", "layernorm dense(1)"}) {
    CAPTURE(spec);
    Net net(parse_tail(spec), 6, {.seed = 3, .dtype = DType::f64});
    const Interval found = found_within(net, 2), proved = bound_net(net, {.within = 2}).outputs[0];
    CHECK(proved.low <= found.low);
    CHECK(proved.high >= found.high);
    CHECK(proved.high - proved.low <= 1.6 * (found.high - found.low));
  }
}

TEST_CASE("net_bound within: what is no length is refused, and what leaves double") {
  const Net net = random_net("dense(8) relu dense(1)", 2, 3);
  for (const double within : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(message_of([&] { bound_net(net, {.within = within}); }) ==
          fmt::format("net_bound: got |x| within {}, wanted a number above 0", within));
  CHECK(!bound_net(net).bounded);
  for (const double within : {1e-200, 1e200}) {
    CAPTURE(within);
    const Interval of = bound_net(net, {.within = within}).outputs[0];
    const Interval found = found_within(net, within);
    CHECK(of.low <= found.low);
    CHECK(of.high >= found.high);
  }
  for (const double within : {1e-308, 1e308})
    CHECK(message_of([&] { bound_net(net, {.within = within}); })
              .starts_with(within < 1 ? "net_bound: got weights and a region of |x| so small "
                                      : "net_bound: got weights so large "));
}

}  // namespace
}  // namespace keel
