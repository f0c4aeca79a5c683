// A box taken through a net: what is bounded, and how near.
#include "../../ntk/box_pass.h"

#include <doctest/doctest.h>

#include <cmath>

#include "drawn_boxes.h"

namespace keel {
namespace {

using namespace drawn_boxes;

TEST_CASE("box_pass: nothing in a box is beyond its bound, of random nets of every word") {
  constexpr int kNets = 400, kPointsOfBox = 200;
  Dice dice{std::mt19937_64(21)};
  for (int i = 0; i < kNets; ++i) {
    const Spec spec = random_spec(dice, 7, false);
    const Net net = random_net(dice, spec, 1 + dice.below(4), DType::f64);
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    const BoxNet steps = box_net(net);
    REQUIRE(steps.outputs == static_cast<std::size_t>(net.output_width()));
    const Box box = drawn_box(dice, steps.inputs);
    const double within = dice.below(3) == 0 ? fraction_of(dice) + 0.5 : kInfinity;
    const BoxPass pass(steps, box, within);
    for (int draw = 0; draw < 4; ++draw) {
      Vector weights, lost;
      for (std::size_t o = 0; o < steps.outputs; ++o) weights.push_back(dice.normal());
      const double bound = pass.bound(weights, lost);
      REQUIRE(lost.size() == steps.inputs);
      for (int p = 0; p < kPointsOfBox; ++p) {
        Vector x = point_in(dice, box);
        const double length = std::sqrt(dot_of(x, x));
        if (length > within) {  // on the ball's edge, where that is in the box
          for (double& value : x) value *= within * (1 - 1e-12) / length;
          bool inside = true;
          for (std::size_t k = 0; k < x.size(); ++k)
            inside = inside && x[k] >= box.low[k] && x[k] <= box.high[k];
          if (!inside) continue;
        }
        if (keeps_to(dice, net, x, weights, bound)) continue;
        FAIL_CHECK("above ", bound);
        break;
      }
    }
  }
}

// How far above what is reached a bound of a box about a point is.
double gap_of(const Net& net, const Vector& middle, double half) {
  Box box{middle, middle};
  for (std::size_t k = 0; k < middle.size(); ++k) {
    box.low[k] -= half;
    box.high[k] += half;
  }
  Vector lost;
  const double bound = BoxPass(box_net(net), box, kInfinity).bound({1}, lost);
  Plain plain(net);
  constexpr int kSide = 40;
  double reached = -kInfinity;
  for (int i = 0; i <= kSide; ++i)
    for (int j = 0; j <= kSide; ++j)
      reached = std::max(reached, plain.forward({middle[0] + half * (2.0 * i / kSide - 1),
                                                 middle[1] + half * (2.0 * j / kSide - 1)})[0]);
  CHECK(bound >= reached - 1e-12);
  return bound - reached;
}

TEST_CASE("box_pass: bounds close in with the square of a box, norms and residuals included") {
  for (const char* spec : {"dense(16) tanh dense(16) gelu dense(1)",
                           "dense(16) layernorm silu dense(16) tanh dense(1)",
                           "dense(16) silu dense(16) layernorm sigmoid dense(1)",
                           "dense(16) residual(rmsnorm softplus dense(16)) layernorm dense(1)",
                           "dense(16) rmsnorm dense(16) layernorm(affine=0) elu dense(1)"}) {
    CAPTURE(spec);
    const Net net(spec, 2, {.seed = 5, .dtype = DType::f64, .sigma_b2 = 0.3});
    const double wide = gap_of(net, {0.8, -0.5}, 0.04), narrow = gap_of(net, {0.8, -0.5}, 0.004);
    CHECK(wide < 0.2);
    CHECK(narrow < wide / 30);
  }
}

TEST_CASE("box_pass: a box that is a point has its value") {
  const Net net("dense(9) layernorm gelu dense(5) residual(rmsnorm relu dense(5)) dense(2)", 3,
                {.seed = 2, .dtype = DType::f64, .sigma_b2 = 0.3});
  const Vector x = {0.3, -1, 2}, f = Plain(net).forward(x);
  Vector lost;
  for (const Vector& weights : {Vector{1, 0}, Vector{0, -1}, Vector{0.5, 2}}) {
    const double bound = BoxPass(box_net(net), {x, x}, kInfinity).bound(weights, lost);
    CHECK(bound >= dot_of(weights, f));
    CHECK(bound == doctest::Approx(dot_of(weights, f)).epsilon(1e-5));
  }
}

TEST_CASE("largest_in_ball: what a box and a ball leave of a linear function") {
  Dice dice{std::mt19937_64(4)};
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Box box = drawn_box(dice, 3);
    const double within = 0.2 + 2 * fraction_of(dice);
    Vector weights;
    for (int k = 0; k < 3; ++k) weights.push_back(dice.below(4) == 0 ? 0 : dice.normal());
    const double bound = largest_in_ball(weights, box, within);
    double reached = -kInfinity, by_box = 0;
    for (std::size_t k = 0; k < 3; ++k)
      by_box += std::max(weights[k] * box.low[k], weights[k] * box.high[k]);
    CHECK(bound <= by_box + 1e-12);
    for (int p = 0; p < 2000; ++p) {
      const Vector x = point_in(dice, box);
      if (dot_of(x, x) <= within * within) reached = std::max(reached, dot_of(weights, x));
    }
    CHECK(bound >= reached - 1e-12);
  }
  // Of the whole ball |w| within; of a box that cuts a piece of it, by hand.
  CHECK(largest_in_ball({3, 4}, {{-9, -9}, {9, 9}}, 2) == doctest::Approx(10));
  CHECK(largest_in_ball({1, 1}, {{-9, -9}, {9, 0.5}}, 1) == doctest::Approx(0.5 + std::sqrt(0.75)));
  CHECK(largest_in_ball({0, 0}, {{0.5, -9}, {9, 9}}, 1) == doctest::Approx(0));
}

TEST_CASE("box_pass: of one unit a ball's bound is where it touches the ball") {
  for (const double sign : {1.0, -1.0}) {
    Net net("dense(1) relu dense(1)", 2, {.dtype = DType::f64, .sigma_b2 = 0.3});
    const Vector w = {sign * 0.6, sign * -0.8};
    const Tensor first = net.layout().member_view(net.flat(), 0, 0);
    copy(first, Tensor::from(w, {1, 2}));
    const double back = net.values(2)[0], bias = net.values(1)[0];
    const double most = net.values(3)[0] + back * std::max(0.0, 1.5 + bias);
    Vector lost;
    const BoxNet steps = box_net(net);
    const BoxPass pass(steps, {{-2, -2}, {2, 2}}, 1.5);
    const double bound = back > 0 ? pass.bound({1}, lost) : -pass.bound({-1}, lost);
    CHECK(back * (bound - most) >= 0);
    CHECK(std::abs(bound - most) <= 1e-4 * std::abs(back));
  }
}

}  // namespace
}  // namespace keel
