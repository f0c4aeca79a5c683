// A norm that does not divide yet over a box, against draws of all that its forms may be.
#include "../../ntk/box_divisor.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../ntk/box_layers.h"
#include "../../ntk/box_pass.h"
#include "../../ntk/box_region.h"
#include "../../ntk/net_bound.h"
#include "drawn_boxes.h"

namespace keel {
namespace {

using namespace drawn_boxes;

struct DrawnDivisor {
  BoxNorm norm{};
  Forms given{};
  Interval last{1, 1};
};

// Forms of two inputs and one variable of an earlier norm; the next is this one's. Behind c, where
// eps goes with it, t, which is the second input's.
DrawnDivisor drawn_divisor(Dice& dice, double spread, double radius, double middle) {
  DrawnDivisor result;
  const auto n = static_cast<std::size_t>(2 + dice.below(5));
  const bool of_last = dice.below(2) == 0;
  result.norm = {n, std::vector<double>{0, 1e-5, 0.5}[dice.below(3)], of_last};
  Forms& given = result.given = empty_forms(n + of_last, 4);
  for (std::size_t j = 0; j < n; ++j) {
    result.norm.gain.push_back(dice.normal());
    result.norm.bias.push_back(dice.normal());
    result.norm.most.push_back(std::sqrt(static_cast<double>(n)));
    given.centre[j] = middle * dice.normal();
    given.radius[j] = radius * std::abs(dice.normal());
    for (std::size_t k = 0; k < 3; ++k) given.of(k)[j] = spread * dice.normal();
  }
  if (of_last) {
    result.last = {0.2, 0.9};
    given.centre[n] = 0.55;
    given.of(1)[n] = 0.35;
  }
  const Vector reach = reaches(given);
  for (std::size_t j = 0; j < given.units; ++j)
    set_ends(given, j, reach[j], {-kInfinity, kInfinity});
  return result;
}

// What is given at some e, and what r is of it.
Vector drawn_values(Dice& dice, const Forms& given, const Vector& e) {
  Vector of;
  for (std::size_t j = 0; j < given.units; ++j) {
    of.push_back(given.centre[j] + given.radius[j] * share_of(dice));
    for (std::size_t k = 0; k < 3; ++k) of[j] += e[k] * given.of(k)[j];
  }
  return of;
}

double divisor_of(const BoxNorm& norm, const Vector& of) {
  double square = norm.eps * (norm.eps_of_last ? of.back() * of.back() : 1);
  for (std::size_t j = 0; j < norm.units; ++j)
    square += of[j] * of[j] / static_cast<double>(norm.units);
  return std::sqrt(square);
}

TEST_CASE("box_divisor: draws keep to the bounds that go back, to the ends, ratios and forms") {
  constexpr int kDraws = 200;
  Dice dice{std::mt19937_64(33)};
  for (const double spread : {1.0, 0.1, 1e-3})
    for (const double radius : {0.0, 0.1, 1.0})
      for (int i = 0; i < 60; ++i) {
        CAPTURE(spread);
        CAPTURE(radius);
        CAPTURE(i);
        const DrawnDivisor drawn = drawn_divisor(dice, spread, radius * spread, i % 4 == 0 ? 0 : 2);
        const Forms& given = drawn.given;
        const std::size_t n = drawn.norm.units;
        const DivisorLines lines(drawn.norm, given, 2, drawn.last);
        const Forms h = lines.forms(3);
        REQUIRE(h.units == n + 1);
        Vector weights, lost(2);
        for (std::size_t j = 0; j <= n; ++j) weights.push_back(dice.normal());
        if (i % 3 == 0) weights[n] *= 30;  // a level that nothing comes to, or all
        Vector before = weights;
        double value = 0, size = 0;
        lines.back(before, value, size, &lost);
        REQUIRE(before.size() == given.units);
        CHECK(lost[0] >= 0);
        CHECK(lost[1] >= 0);
        const double most_ratio = lines.most_ratio(weights, 0, lost);
        for (int draw = 0; draw < kDraws; ++draw) {
          Vector e;
          for (int k = 0; k < 3; ++k) e.push_back(share_of(dice));
          const Vector of = drawn_values(dice, given, e);
          const double r = divisor_of(drawn.norm, of);
          double reached = 0, at_most = value + 1e-9 * size;
          for (std::size_t j = 0; j < given.units; ++j) at_most += before[j] * of[j];
          for (std::size_t j = 0; j <= n; ++j) {
            const double is = j == n ? r : of[j] * drawn.norm.gain[j] + r * drawn.norm.bias[j];
            reached += weights[j] * is;
            CHECK(is >= h.low[j]);
            CHECK(is <= h.high[j]);
            CHECK(is >= r * h.ratios[j].low);
            CHECK(is <= r * h.ratios[j].high);
            double off = h.centre[j], allowed = h.radius[j];
            for (std::size_t k = 0; k < 3; ++k) off += e[k] * h.of(k)[j];
            allowed += std::abs(h.of(3)[j]);
            CHECK(std::abs(is - off) <= allowed);
          }
          CHECK(reached <= at_most);
          CHECK(reached <= r * most_ratio);
        }
      }
}

TEST_CASE("box_divisor: units behind it keep to their forms, ends and ratios, too") {
  Dice dice{std::mt19937_64(34)};
  int open = 0;
  for (const LayerKind kind : {LayerKind::relu, LayerKind::gelu, LayerKind::tanh})
    for (const double spread : {1.0, 0.1})
      for (int i = 0; i < 60; ++i) {
        CAPTURE(spread);
        CAPTURE(i);
        const DrawnDivisor drawn = drawn_divisor(dice, spread, 0.1 * spread, i % 3);
        const std::size_t n = drawn.norm.units;
        const Forms h = DivisorLines(drawn.norm, drawn.given, 2, drawn.last).forms(3);
        const Interval t{std::max(h.low[n], 0.0), h.high[n]};
        const Activation phi(kind);
        std::vector<UnitPlanes> planes;
        const Forms g = through(BoxUnits{n, phi, UnitScale::perspective}, h, t, planes);
        REQUIRE(g.units == n + 1);
        for (std::size_t j = 0; j < n && t.low == 0; ++j) {
          ++open;
          CHECK(planes[j].of_z.middle == 0);  // through 0 alone
          CHECK(planes[j].of_z.radius == 0);
        }
        for (int draw = 0; draw < 100; ++draw) {
          Vector e;
          for (int k = 0; k < 3; ++k) e.push_back(share_of(dice));
          const Vector of = drawn_values(dice, drawn.given, e);
          const double r = divisor_of(drawn.norm, of);
          for (std::size_t j = 0; j < n; ++j) {
            const double u = of[j] / r * drawn.norm.gain[j] + drawn.norm.bias[j], is = r * phi(u);
            CHECK(is >= g.low[j]);
            CHECK(is <= g.high[j]);
            CHECK(phi(u) >= g.ratios[j].low);
            CHECK(phi(u) <= g.ratios[j].high);
            double off = g.centre[j], allowed = g.radius[j] + std::abs(g.of(3)[j]);
            for (std::size_t k = 0; k < 3; ++k) off += e[k] * g.of(k)[j];
            CHECK(std::abs(is - off) <= allowed);
          }
        }
      }
  CHECK(open > 20);
}

TEST_CASE("box_divisor: of one box of every x a linear net has the bound of the ball") {
  for (const char* norm : {"rmsnorm", "layernorm"}) {
    CAPTURE(norm);
    const Net net(fmt::format("dense(7) {} dense(1)", norm), 7,
                  {.seed = 3, .dtype = DType::f64, .sigma_b2 = 0.3});
    const BoxRegion region = *box_region(net, {.boxes = 1});
    REQUIRE(region.net.divides());
    Vector lost;
    Box all{Vector(8, -1.0), Vector(8, 1.0)};
    all.low[7] = 0;
    const double bound = BoxPass(region.net, all, kInfinity).bound({1}, lost);
    const std::size_t last = net.layout().entries().size() - 2;
    const Vector w = net.values(last), gain = net.values(2);
    double square = 0, bias = net.values(last + 1)[0];
    for (std::size_t j = 0; j < 7; ++j) square += std::pow(w[j] * gain[j], 2);
    CHECK(bound == doctest::Approx(std::sqrt(7 * square) + bias).epsilon(1e-6));
    for (const double of : lost) CHECK(of > 0);
    all.low[7] = 0.01;  // r is above 0 now, and no better told apart from c
    CHECK(BoxPass(region.net, all, kInfinity).bound({1}, lost) <= bound * (1 + 1e-4));
  }
}

TEST_CASE("box_divisor: where r may be 0 and activations have no planes through 0, as of 1e5") {
  for (const char* phi : {"gelu", "elu", "tanh", "relu"}) {
    CAPTURE(phi);
    const Net net(fmt::format("dense(4) rmsnorm(eps=0) {0} dense(4) {0} dense(1)", phi), 2,
                  {.seed = 6, .dtype = DType::f64, .sigma_b2 = 0.3});
    Vector bias = net.values(1), second = net.values(3);
    for (double& value : bias) value = 0;
    for (double& value : second) value *= 1e5;
    copy(net.layout().member_view(net.flat(), 1, 0), Tensor::from(bias, {4}));
    copy(net.layout().member_view(net.flat(), 3, 0), Tensor::from(second, {4, 4}));
    const BoxNet steps = box_net(net);
    REQUIRE(steps.divides());
    const BoxPass pass(steps, {{-1, -1}, {1, 1}}, kInfinity);
    Vector lost;
    const double high = pass.bound({1}, lost), low = -pass.bound({-1}, lost);
    for (int i = 0; i < 400; ++i) {
      const double at = 2 * M_PI * i / 400, length = std::pow(10.0, -(i % 9));
      const double f = Plain(net).forward({length * std::cos(at), length * std::sin(at)})[0];
      CHECK(f <= high);
      CHECK(f >= low);
    }
  }
}

TEST_CASE("box_divisor: a box's bound is nearly that of the best level") {
  const Net net("dense(16) layernorm relu dense(16) relu dense(1)", 2,
                {.seed = 5, .dtype = DType::f64, .sigma_b2 = 0.3});
  const BoxNet steps = box_net(net);
  Dice dice{std::mt19937_64(12)};
  Vector lost;
  double open = 0, reached = 0;
  for (int i = 0; i < 20; ++i) {
    const Vector middle = {dice.normal(), dice.normal()};
    const Box box{{middle[0] - 0.3, middle[1] - 0.3}, {middle[0] + 0.3, middle[1] + 0.3}};
    const double high = BoxPass(steps, box, kInfinity).bound({1}, lost),
                 low = -BoxPass(steps, box, kInfinity).bound({-1}, lost);
    double most = -kInfinity, least = kInfinity;
    for (int p = 0; p < 400; ++p) {
      const double f = Plain(net).forward(point_in(dice, box))[0];
      most = std::max(most, f);
      least = std::min(least, f);
    }
    open += high - most + least - low;
    reached += most - least;
  }
  CHECK(open <= 1.15 * reached);
}

TEST_CASE("box_divisor: where norms stay linear, and where a residual keeps them from it") {
  const auto divides = [](const char* spec) {
    return box_net(Net(spec, 2, {.dtype = DType::f64})).divides();
  };
  CHECK(divides("dense(4) layernorm relu dense(1)"));
  CHECK(divides("dense(4) tanh dense(4) rmsnorm dense(1)"));
  CHECK(divides("dense(4) residual(layernorm relu dense(4)) layernorm residual(relu) dense(1)"));
  CHECK(!divides("dense(4) layernorm residual(layernorm relu dense(4)) dense(1)"));
  CHECK(!divides("dense(4) residual(layernorm relu dense(4)) dense(1)"));
  CHECK(!divides("dense(4) tanh dense(1)"));
}

}  // namespace
}  // namespace keel
