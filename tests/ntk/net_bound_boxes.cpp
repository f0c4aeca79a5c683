// Bounds by cutting the inputs' region in boxes, against dense scans: of few features nothing is
// left open.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../core/threads.h"
#include "../../ntk/box_bound.h"
#include "../../ntk/precise_net.h"
#include "../message_of.h"
#include "scanned_net.h"

namespace keel {
namespace {

const char* const kEveryKind[] = {"dense(16) relu dense(16) relu dense(1)",
                                  "dense(16) layernorm relu dense(16) gelu dense(1)",
                                  "dense(16) silu dense(16) layernorm relu dense(1)",
                                  "dense(16) rmsnorm tanh dense(16) layernorm relu dense(1)",
                                  "dense(16) sigmoid dense(16) softplus dense(1)",
                                  "dense(16) residual(layernorm relu dense(16)) relu dense(1)",
                                  "dense(16) prelu(per_unit=1) dense(16) elu dense(1)"};

TEST_CASE("net_bound boxes: of one feature the interval is what f takes, within R and in a range") {
  for (const char* spec : kEveryKind) {
    CAPTURE(spec);
    const Net net = random_net(spec, 1, 11);
    for (const double within : {0.01, 2.0, 300.0}) {
      CAPTURE(within);
      // Of |x| from tiny to all of it, as f may be steep near 0.
      const Interval found = scanned(net, 40001, [&](int i) {
        const double part = (i - 20000) / 20000.0;
        return Vector{within * part * part * part};
      });
      check_closed(bound_net(net, {.within = within, .boxes = kBoxes}), found);
    }
    const Interval found = scanned(net, 20001, [](int i) { return Vector{0.5 + i / 20000.0}; });
    check_closed(bound_net(net, {.ranges = {{0.5, 1.5}}, .boxes = kBoxes}), found);
  }
}

TEST_CASE("net_bound boxes: of two features, in a ball and in ranges") {
  for (const char* spec : kEveryKind) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, 12);
    constexpr int kSide = 300;
    const Interval in_ball = scanned(net, kSide * kSide, [](int i) {
      const double r = 2 * std::sqrt((i / kSide) / (kSide - 1.0)),
                   at = 2 * M_PI * (i % kSide) / kSide;
      return Vector{r * std::cos(at), r * std::sin(at)};
    });
    check_closed(bound_net(net, {.within = 2, .boxes = kBoxes}), in_ball);
    const Interval in_ranges = scanned(net, kSide * kSide, [](int i) {
      return Vector{-1 + 3.0 * (i / kSide) / (kSide - 1), 0.5 + 1.5 * (i % kSide) / (kSide - 1)};
    });
    check_closed(bound_net(net, {.ranges = {{-1, 2}, {0.5, 2}}, .boxes = kBoxes}), in_ranges);
  }
}

TEST_CASE("net_bound boxes: a linear net's ranges, exactly, of several outputs") {
  const Net net = random_net("dense(4) dense(3)", 3, 7);
  const std::vector<Interval> ranges = {{-1, 2}, {3, 3}, {0, 10}};
  for (const std::int64_t boxes : {std::int64_t{0}, kBoxes}) {
    const NetBound bound = bound_net(net, {.ranges = ranges, .boxes = boxes});
    REQUIRE(bound.outputs.size() == 3);
    CHECK(bound.word == 0);
    for (std::size_t o = 0; o < 3; ++o) {
      double low = kInfinity, high = -kInfinity;
      for (int corner = 0; corner < 8; ++corner) {
        Vector x;
        for (std::size_t k = 0; k < 3; ++k)
          x.push_back(corner >> k & 1 ? ranges[k].high : ranges[k].low);
        const double f = net.predict(Tensor::from(x, {1, 3})).to_vector<double>()[o];
        low = std::min(low, f);
        high = std::max(high, f);
      }
      CHECK(bound.outputs[o].low <= low);
      CHECK(bound.outputs[o].high >= high);
      CHECK(low - bound.outputs[o].low <= 1e-6 * (high - low));
      CHECK(bound.outputs[o].high - high <= 1e-6 * (high - low));
    }
  }
}

TEST_CASE(
    "net_bound boxes: ranges by the dual alone hold what boxes find, and are no wider than a "
    "ball") {
  for (const char* spec : {"dense(16) relu dense(16) relu dense(1)",
                           "dense(16) layernorm relu dense(16) relu dense(1)",
                           "dense(16) tanh dense(16) tanh dense(1)",
                           "dense(16) relu dense(16) layernorm relu dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, 12);
    const std::vector<Interval> ranges = {{-0.3, 0.2}, {0.5, 0.9}};
    const Interval dual = bound_net(net, {.ranges = ranges}).outputs[0],
                   closed = bound_net(net, {.ranges = ranges, .boxes = kBoxes}).outputs[0],
                   ball = bound_net(net, {.within = std::hypot(0.3, 0.9)}).outputs[0];
    CHECK(dual.low <= closed.low + 1e-3 * (closed.high - closed.low));
    CHECK(dual.high >= closed.high - 1e-3 * (closed.high - closed.low));
    CHECK(dual.high - dual.low <= 1.001 * (ball.high - ball.low));
  }
}

TEST_CASE("net_bound boxes: more boxes are no looser, and threads change nothing") {
  const Net net = random_net("dense(24) relu dense(24) tanh dense(1)", 4, 5);
  const auto width = [&](std::int64_t boxes) {
    const Interval of = bound_net(net, {.within = 2, .pieces = 0, .boxes = boxes}).outputs[0];
    return of.high - of.low;
  };
  const double none = width(0), some = width(2000), more = width(40000);
  CHECK(some <= none);
  CHECK(more <= some);
  CHECK(more < 0.9 * none);
  const BoxRegion region = *box_region(net, {.within = 2, .boxes = 1});
  const auto end = [&] {
    BoxCuts cuts(region, {1});
    cuts.go_on(600, 0);
    CHECK(cuts.boxes() >= 600);
    return std::pair(cuts.bound(), cuts.found());
  };
  const auto many = end();
  const ThreadLimit one(1);
  CHECK(end() == many);
}

TEST_CASE("net_bound boxes: where they tell nothing the dual's interval stays") {
  // No region: of what nothing bounds, all x are not one; numbers whose products leave double.
  CHECK(!box_region(random_net("dense(4) gelu dense(4) dense(1)", 2, 1), {.boxes = 1}));
  Net large = random_net("dense(4) relu dense(1)", 2, 1);
  Vector values = large.flat().to_vector<double>();
  for (double& value : values) value *= 1e90;
  copy(large.flat(), Tensor::from(values, large.flat().shape()));
  CHECK(!box_region(large, {.within = 2, .boxes = 1}));
  const Interval with = bound_net(large, {.within = 2, .boxes = kBoxes}).outputs[0],
                 without = bound_net(large, {.within = 2}).outputs[0];
  CHECK(with.low == without.low);
  CHECK(with.high == without.high);
  // Of many features a first look is all.
  const Net wide = random_net("dense(16) layernorm relu dense(16) relu dense(1)", 40, 1);
  const NetBound looked = bound_net(wide, {.pieces = 0, .boxes = 400000});
  CHECK(!looked.closed);
  CHECK(looked.boxes <= 2 * 4096 + 64 + 4 * 40);
  CHECK(bound_net(wide, {.pieces = 0, .boxes = std::nullopt}).boxes == 0);
  // A net that is constant is at once closed.
  const Net net("dense(3) relu dense(1)", 2, {.dtype = DType::f64, .sigma_b2 = 0});
  fill(net.flat(), 0);
  const NetBound constant = bound_net(net, {.within = 5, .boxes = kBoxes});
  CHECK(constant.closed);
  CHECK(constant.boxes <= 2);
}

TEST_CASE("net_bound boxes: what ends that have closed leave of them is the others'") {
  Net net = random_net("dense(16) gelu dense(16) gelu dense(2)", 4, 1);
  Vector last = net.values(4);
  for (std::size_t i = 0; i < 16; ++i) last[i] = 0;  // output 0 is constant
  copy(net.layout().member_view(net.flat(), 4, 0), Tensor::from(last, {2, 16}));
  const NetBound bound = bound_net(
      net, {.ranges = std::vector<Interval>(4, {-1, 1}), .boxes = 600, .all_boxes = true});
  CHECK(!bound.closed);
  CHECK(bound.boxes >= 590);
  CHECK(bound.boxes <= 600 + 4 * 32);
}

TEST_CASE("net_bound boxes: a norm with eps 0 of what may be 0, where f jumps") {
  for (const char* norm : {"layernorm(eps=0)", "rmsnorm(eps=0)"})
    for (const std::int64_t features : {1, 2}) {
      CAPTURE(norm);
      CAPTURE(features);
      const Net net(fmt::format("dense(8) {} relu dense(8) tanh dense(1)", norm), features,
                    {.seed = 4, .dtype = DType::f64, .sigma_b2 = 0});
      const Interval found = scanned(net, 2001, [&](int i) {
        const double at = M_PI * (i - 1000) / 1000, r = 1e-9 * (1 + i % 7);
        return features == 1 ? Vector{r * (i - 1000)} : Vector{r * std::cos(at), r * std::sin(at)};
      });
      for (const double within : {1e-150, 1.0}) {
        const Interval proved =
            bound_net(net, {.within = within, .pieces = 0, .boxes = 4000}).outputs[0];
        CHECK(proved.low <= found.low + 1e-12);
        CHECK(proved.high >= found.high - 1e-12);
      }
      const Interval all = bound_net(net, {.pieces = 0, .boxes = 4000}).outputs[0];
      CHECK(all.low <= found.low + 1e-12);
      CHECK(all.high >= found.high - 1e-12);
    }
}

TEST_CASE(
    "net_bound boxes: where a norm with eps 0 has nothing to divide, f is what is behind it") {
  for (const char* norm : {"layernorm(affine=0, eps=0)", "rmsnorm(affine=0, eps=0)"})
    for (const std::int64_t features : {1, 2}) {
      CAPTURE(norm);
      CAPTURE(features);
      const Net net(fmt::format("dense(8) {} relu dense(8) relu dense(1)", norm), features,
                    {.seed = 5, .dtype = DType::f64, .sigma_b2 = 0});
      copy(net.layout().member_view(net.flat(), 5, 0), Tensor::full({1}, 100, DType::f64));
      const Interval found = scanned(net, 2001, [&](int i) {  // f is of x's direction, or of 0
        const double at = M_PI * (i - 1000) / 1000;
        if (i == 0) return Vector(static_cast<std::size_t>(features), 0);
        return features == 1 ? Vector{at} : Vector{std::cos(at), std::sin(at)};
      });
      for (const NetBoundOptions& options :
           {NetBoundOptions{.boxes = kBoxes}, NetBoundOptions{.within = 1e-170, .boxes = kBoxes}}) {
        const NetBound bound = bound_net(net, options);
        if (bound.closed) check_closed(bound, found);  // f jumps: it need not be
        CHECK(bound.outputs[0].low <= found.low + 1e-12);
        CHECK(bound.outputs[0].high >= found.high - 1e-12);
        CHECK(bound.outputs[0].low > 99);  // not what 0 / 0 times anything would make of it
      }
    }
}

TEST_CASE("net_bound boxes: a first layer without biases leaves nothing open either") {
  for (const char* spec : {"dense(16) layernorm relu dense(1)",
                           "dense(16) residual(layernorm dense(16)) layernorm dense(1)"})
    for (const std::int64_t features : {1, 2})
      for (const std::uint64_t seed : {1, 2, 3}) {
        CAPTURE(spec);
        CAPTURE(features);
        CAPTURE(seed);
        const Net net(spec, features, {.seed = seed, .dtype = DType::f64, .sigma_b2 = 0});
        const NetBound bound = bound_net(net, {.boxes = kBoxes});
        CHECK(bound.closed);
        CHECK(bound.boxes < kBoxes);
      }
}

TEST_CASE("net_bound boxes: a norm of what cancels where two dense layers are multiplied out") {
  // W2 W1 is 0 but for its last digits, which are not those of the product in double; with eps 0
  // the norm sees nothing else.
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Net net("dense(3) dense(4) layernorm(eps=0) dense(1)", 1,
            {.seed = seed, .dtype = DType::f64, .sigma_b2 = 0});
    const Vector first = net.values(0);
    Vector second = net.values(2);
    for (std::size_t i = 0; i < 4; ++i)
      second[i * 3 + 2] = -(second[i * 3] * first[0] + second[i * 3 + 1] * first[1]) / first[2];
    copy(net.layout().member_view(net.flat(), 2, 0), Tensor::from(second, {4, 3}));
    const double f = evaluate_precisely(net, {0.5})[0];
    const Interval proved = bound_net(net, {.ranges = {{0.4, 0.6}}, .boxes = 200}).outputs[0];
    CHECK(proved.low <= f + 1e-9);
    CHECK(proved.high >= f - 1e-9);
  }
}

TEST_CASE("net_bound boxes: what is no region is refused") {
  const Net net = random_net("dense(4) relu dense(1)", 2, 1);
  const auto refusal = [&](const NetBoundOptions& options) {
    return message_of([&] { bound_net(net, options); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal({.ranges = {{0, 1}}}) == "net_bound: got 1 ranges for 2 features, wanted as many");
  CHECK(refusal({.ranges = {{0, 1}, {2, 1}}}) ==
        "net_bound: got the range [2, 1] of feature 1, wanted two numbers, the smaller first");
  CHECK(refusal({.ranges = {{nan, 1}, {0, 1}}}).find("of feature 0") != std::string::npos);
  CHECK(refusal({.ranges = {{0, kInfinity}, {0, 1}}}).find("of feature 0") != std::string::npos);
  CHECK(refusal({.within = 2, .ranges = {{0, 1}, {0, 1}}}) ==
        "net_bound: got ranges and |x| within 2, wanted one of both");
  CHECK(refusal({.within = 2, .boxes = -1}) == "net_bound: got -1 boxes, wanted at least 0");
}

}  // namespace
}  // namespace keel
