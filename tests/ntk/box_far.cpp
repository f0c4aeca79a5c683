// Boxes of (p, t), x = p / t, up to where x is infinitely far: what is bounded, how near, and what
// homogeneous nets are.
#include <doctest/doctest.h>

#include <cmath>

#include "../../ntk/box_pass.h"
#include "../../ntk/box_region.h"
#include "../../ntk/tail_sum.h"
#include "drawn_boxes.h"

namespace keel {
namespace {

using namespace drawn_boxes;

// Of (p, t): a face's, and some at t = 0.
Box drawn_face(Dice& dice, std::size_t inputs) {
  Box box = drawn_box(dice, inputs);
  for (std::size_t k = 0; k < inputs; ++k) {
    box.low[k] = std::clamp(box.low[k], -1.0, 1.0);
    box.high[k] = std::clamp(box.high[k], -1.0, 1.0);
  }
  const double t = std::pow(10.0, -static_cast<double>(dice.below(9)));
  box.high.back() = t;
  box.low.back() = dice.below(2) == 0 ? 0 : t * fraction_of(dice);
  const auto side = static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(inputs)));
  box.low[side] = box.high[side] = side + 1 < inputs && dice.below(2) == 0 ? -1 : 1;
  return box;
}

TEST_CASE("box_pass: nor of (p, t), of every net that something bounds, where t is above 0") {
  constexpr int kNets = 400, kPointsOfBox = 200;
  Dice dice{std::mt19937_64(22)};
  int products = 0, quotients = 0;
  for (int i = 0; i < kNets; ++i) {
    Spec spec = random_spec(dice, 7, i % 3 > 0);
    if (bounding_layer(spec) == spec.size())
      spec.insert(spec.end() - 1, {.kind = i % 2 == 0 ? LayerKind::tanh : LayerKind::sigmoid});
    const Net net = random_net(dice, spec, 1 + dice.below(4), DType::f64);
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    const BoxNet steps = homogeneous_box_net(net);
    products += steps.products > 0;
    for (const BoxStep& step : steps.steps)
      if (const auto* units = std::get_if<BoxUnits>(&step))
        quotients += units->scale == UnitScale::quotient;
    const Box box = drawn_face(dice, steps.inputs);
    const BoxPass pass(steps, box, kInfinity);
    for (int draw = 0; draw < 4; ++draw) {
      Vector weights, lost;
      for (std::size_t o = 0; o < steps.outputs; ++o) weights.push_back(dice.normal());
      const double bound = pass.bound(weights, lost);
      REQUIRE(lost.size() == steps.inputs);
      for (const double of : lost) CHECK(of >= 0);
      for (int p = 0; p < kPointsOfBox; ++p) {
        Vector x = point_in(dice, box);
        const double t = std::max(x.back(), 1e-12);
        if (t > box.high.back()) continue;
        x.pop_back();
        for (double& value : x) value /= t;
        if (keeps_to(dice, net, x, weights, bound)) continue;
        FAIL_CHECK("above ", bound);
        break;
      }
    }
  }
  CHECK(products >= kNets / 20);
  CHECK(quotients > kNets / 10);
}

// How far above what is reached a bound of a box about a point is.
double gap_of_far(const Net& net, const Vector& middle, double half) {
  Box box{middle, middle};
  for (const std::size_t k : {0, 2}) {
    box.low[k] -= half;
    box.high[k] += half;
  }
  Vector lost;
  const BoxNet steps = homogeneous_box_net(net);
  const double bound = BoxPass(steps, box, kInfinity).bound({1}, lost);
  constexpr int kSide = 40;
  double reached = -kInfinity;
  for (int i = 0; i <= kSide; ++i)
    for (int j = 0; j <= kSide; ++j) {
      const double t = middle[2] + half * (2.0 * j / kSide - 1);
      const double p = middle[0] + half * (2.0 * i / kSide - 1);
      reached = std::max(reached, Plain(net).forward({p / t, middle[1] / t})[0]);
    }
  CHECK(bound >= reached - 1e-12);
  return bound - reached;
}

TEST_CASE("box_pass: of (p, t) they do, too, whatever is ahead of what bounds the net") {
  for (const std::string spec :
       {"dense(16) gelu dense(16) layernorm silu dense(1)",
        "dense(16) tanh dense(16) tanh dense(1)", "dense(16) softplus dense(8) sigmoid dense(1)",
        "dense(16) residual(layernorm silu dense(16)) rmsnorm dense(1)",
        "dense(16) residual(tanh dense(16)) residual(gelu dense(16)) layernorm dense(1)"}) {
    CAPTURE(spec);
    const Net net(spec, 2, {.seed = 5, .dtype = DType::f64, .sigma_b2 = 0.3});
    for (const double t : {0.5, 0.1}) {
      CAPTURE(t);
      const double wide = gap_of_far(net, {0.3, 1, t}, 0.2 * t),
                   narrow = gap_of_far(net, {0.3, 1, t}, 0.02 * t);
      CHECK(wide < 2);
      CHECK(narrow < wide / 30);
    }
  }
}

TEST_CASE("homogeneous nets give f(p / t), up to where x is infinitely far") {
  for (const std::string spec :
       {"dense(4) tanh dense(3) tanh dense(1)", "dense(5) gelu dense(4) layernorm dense(1)",
        "dense(5) softplus dense(9) selu dense(4) rmsnorm(eps=0.2) dense(1)",
        "dense(4) residual(layernorm relu dense(4)) layernorm dense(1)",
        "dense(4) residual(silu dense(4)) residual(dense(3) tanh dense(4)) elu rmsnorm dense(2)",
        "dense(3) residual(sigmoid dense(3)) residual(relu dense(3)) sigmoid dense(1)",
        "dense(6) layernorm relu dense(2)", "dense(5) relu dense(6) rmsnorm(eps=0.3) gelu dense(1)",
        "dense(5) prelu(per_unit=1) layernorm dense(3) tanh dense(1)",
        "dense(4) dense(5) leakyrelu dense(3) layernorm(eps=2) dense(2) layernorm relu dense(1)",
        "dense(6) layernorm residual(rmsnorm relu dense(6)) dense(1)"}) {
    CAPTURE(spec);
    const Net net(spec, 2, {.seed = 3, .dtype = DType::f64, .sigma_b2 = 0.5});
    const BoxNet steps = homogeneous_box_net(net);
    CHECK(steps.inputs == 3);
    CHECK(steps.homogeneous);
    Plain plain(net);
    for (const Vector& point : {Vector{1, 0.3, 0.2}, Vector{-0.5, 1, 1e-4}, Vector{0.2, -0.1, 1},
                                Vector{-1, -1, 0.7}, Vector{0, 0, 1}}) {
      const Vector f = plain.forward({point[0] / point[2], point[1] / point[2]});
      const Vector same = box_net_at(steps, point);
      REQUIRE(same.size() == f.size());
      for (std::size_t o = 0; o < f.size(); ++o)
        CHECK(same[o] == doctest::Approx(f[o]).epsilon(1e-9));
    }
    const Vector far = plain.forward({1e9, -2e9}), limit = box_net_at(steps, {0.5, -1, 0});
    for (std::size_t o = 0; o < far.size(); ++o)
      CHECK(limit[o] == doctest::Approx(far[o]).epsilon(1e-6));
  }
}

TEST_CASE("homogeneous nets of spherical variables: the same f, and a norm sees their square") {
  for (const std::string spec :
       {"dense(9) layernorm relu dense(4) relu dense(1)", "dense(9) rmsnorm gelu dense(2)",
        "dense(3) layernorm relu dense(1)", "dense(1) layernorm dense(1)"})
    for (const int kind : {0, 1, 2, 3}) {
      CAPTURE(spec);
      CAPTURE(kind);
      const Net net(spec, 3, {.seed = 4, .dtype = DType::f64, .sigma_b2 = 0.5});
      if (kind == 1) fill(net.layout().member_view(net.flat(), 1, 0), 0);  // no bias
      if (kind == 2) fill(net.layout().member_view(net.flat(), 0, 0), 0);  // nothing but biases
      if (kind == 3) {  // columns that repeat each other
        Vector weight = net.values(0);
        for (std::size_t i = 0; i < weight.size(); i += 3) weight[i + 1] = 2 * weight[i];
        const Tensor home = net.layout().member_view(net.flat(), 0, 0);
        copy(home, Tensor::from(weight, home.shape()));
      }
      const BoxNet steps = homogeneous_box_net(net, true), plain = homogeneous_box_net(net);
      REQUIRE(steps.change.size() == 16);
      CHECK(plain.change.empty());
      for (std::size_t k = 0; k < 4; ++k) CHECK(steps.change[12 + k] == (k == 3 ? 1 : 0));
      BoxRegion region;
      region.net = steps;
      region.ranges.assign(3, {-kInfinity, kInfinity});
      Dice dice{std::mt19937_64(7)};
      for (int draw = 0; draw < 20; ++draw) {
        Vector q, of_all(4);
        for (int k = 0; k < 3; ++k) q.push_back(dice.normal());
        q.push_back(0.1 + fraction_of(dice));
        for (std::size_t i = 0; i < 4; ++i)
          for (std::size_t k = 0; k < 4; ++k) of_all[i] += steps.change[i * 4 + k] * q[k];
        const Vector f = box_net_at(steps, q), same = box_net_at(plain, of_all);
        const Vector x = region.input(q), at_x = Plain(net).forward(x);
        for (std::size_t o = 0; o < f.size(); ++o) {
          CHECK(f[o] == doctest::Approx(same[o]).epsilon(1e-6));
          CHECK(f[o] == doctest::Approx(at_x[o]).epsilon(1e-6));
        }
      }
    }
  // What the norm divides by is |q|, but for a factor and eps, whatever x is measured in.
  const Net net("dense(20) layernorm relu dense(1)", 3,
                {.seed = 4, .dtype = DType::f64, .sigma_b2 = 0.5});
  Vector weight = net.values(0);
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] *= i % 3 == 0 ? 1e-6 : i % 3 == 1 ? 1e4 : 1;
  const Tensor home = net.layout().member_view(net.flat(), 0, 0);
  copy(home, Tensor::from(weight, home.shape()));
  const BoxNet steps = homogeneous_box_net(net, true);
  const auto& map = std::get<BoxMap>(steps.steps.at(0));
  double first = 0;
  Dice dice{std::mt19937_64(8)};
  for (int draw = 0; draw < 20; ++draw) {
    Vector q, c(21);
    for (int k = 0; k < 4; ++k) q.push_back(dice.normal());
    add_product(map.columns, 4, q.data(), c.data());
    CHECK(c.back() == q.back());
    c.pop_back();
    const double ratio = dot_of(c, c) / dot_of(q, q);
    if (draw == 0) first = ratio;
    CHECK(ratio == doctest::Approx(first).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace keel
