// Where boxes are: nothing of a region is left out, however it is cut and narrowed, and points are
// of it; which variables are cut.
#include <doctest/doctest.h>

#include <cmath>

#include "../../core/threads.h"
#include "../../ntk/box_cuts.h"
#include "drawn_boxes.h"
#include "scanned_net.h"

namespace keel {
namespace {

using namespace drawn_boxes;

const char* const kSphere = "dense(9) layernorm relu dense(4) relu dense(1)";
const char* const kPlain = "dense(9) relu dense(5) layernorm relu dense(1)";

Net net_with_bias(const std::string& spec, std::int64_t features) {
  return {spec, features, {.seed = 4, .dtype = DType::f64, .sigma_b2 = 0.5}};
}

// x in the region: within R as often near its edge as not, or at ends of ranges, too.
Vector drawn_input(Dice& dice, const BoxRegion& region) {
  Vector x;
  const bool in_ball = std::isfinite(region.within);
  for (std::size_t k = 0; k < region.features(); ++k) {
    const Interval of = region.ranges[k];
    const double part = dice.below(3) == 0 ? static_cast<double>(dice.below(2)) : fraction_of(dice);
    x.push_back(in_ball ? dice.normal() : of.low + part * (of.high - of.low));
  }
  if (!in_ball) return x;
  const double length = std::sqrt(dot_of(x, x)),
               wanted = region.within * std::pow(10.0, -static_cast<double>(dice.below(7)));
  for (double& of : x) of *= (1 - 1e-12) * wanted / length;
  return x;
}

// Of (x, 1) the net's variables, 1 in their largest number.
Vector variables_at(const BoxRegion& region, Vector x) {
  const std::size_t n = region.net.inputs;
  if (!region.net.homogeneous) return x;
  x.push_back(1);
  for (std::size_t i = region.net.change.empty() ? 0 : n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= region.net.change[i * n + k] * x[k];
    x[i] /= region.net.change[i * n + i];
  }
  double most = 0;
  for (const double of : x) most = std::max(most, std::abs(of));
  for (double& of : x) of /= most;
  return x;
}

bool holds(const Box& box, const Vector& point) {
  for (std::size_t k = 0; k < point.size(); ++k)
    if (point[k] < box.low[k] - 1e-12 || point[k] > box.high[k] + 1e-12) return false;
  return true;
}

std::vector<NetBoundOptions> regions_of(std::size_t features) {
  std::vector<NetBoundOptions> result;
  for (const double within : {0.1, 1.0, 10.0, 1e3, 1e9}) result.push_back({.within = within});
  for (const double wide : {0.3, 3.0, 1e4})
    for (const double shift : {0.0, 0.5, 40.0}) {
      std::vector<Interval> ranges(features, {wide * (shift - 1), wide * (shift + 1)});
      ranges[0] = {-0.2 * wide, wide};
      ranges[1] = {0.7, 0.7};
      result.push_back({.ranges = ranges});
    }
  return result;
}

TEST_CASE("box_region: cut and narrowed, boxes hold all of it") {
  Dice dice{std::mt19937_64(31)};
  int faces = 0, spheres = 0, in_x = 0, empty = 0, smaller = 0;
  for (const char* spec : {kSphere, kPlain, "dense(9) tanh dense(4) layernorm gelu dense(1)"})
    for (const std::int64_t features : {2, 4})
      for (const NetBoundOptions& options : regions_of(static_cast<std::size_t>(features))) {
        CAPTURE(spec);
        CAPTURE(options.within);
        const BoxRegion region = *box_region(net_with_bias(spec, features), options);
        (region.net.homogeneous ? region.net.change.empty() ? faces : spheres : in_x) += 1;
        for (int draw = 0; draw < 60; ++draw) {
          const Vector x = drawn_input(dice, region), u = variables_at(region, x);
          const auto root = std::find_if(region.roots.begin(), region.roots.end(),
                                         [&u](const Box& box) { return holds(box, u); });
          REQUIRE(root != region.roots.end());
          Box box = *root;
          for (int cut = 0; cut < 30; ++cut) {
            const auto side = static_cast<std::size_t>(dice.below(std::ssize(u)));
            const double middle = box.middle(side);
            Box other = box;
            const bool above = u[side] > middle;
            (above ? box.low : box.high)[side] = (above ? other.high : other.low)[side] = middle;
            const Box before = box;
            REQUIRE(region.narrow(box));
            REQUIRE(holds(box, u));
            for (std::size_t k = 0; k < u.size(); ++k) {
              CHECK(box.low[k] >= before.low[k]);
              CHECK(box.high[k] <= before.high[k]);
              CHECK(box.low[k] <= box.high[k]);
              smaller += box.low[k] > before.low[k] || box.high[k] < before.high[k];
            }
            empty += !region.narrow(other);
          }
          // The point itself is near, and is x.
          const Vector same = region.input(region.nearby(u));
          for (std::size_t k = 0; k < x.size(); ++k)
            CHECK(same[k] == doctest::Approx(x[k]).epsilon(1e-6).scale(1e-6 + std::abs(x[k])));
        }
      }
  CHECK(faces > 10);
  CHECK(spheres > 10);
  CHECK(in_x > 10);
  CHECK(empty > 100);
  CHECK(smaller > 1000);
}

TEST_CASE("box_region: what narrow() leaves, by hand") {
  BoxRegion region{.net = homogeneous_box_net(net_with_bias(kPlain, 2)),
                   .ranges = {{100, 300}, {-400, 200}}};
  // p is 1 here, so that t is in [1/300, 1/100], and the second p in [-400 t, 200 t].
  Box box{{1, -10, 0.001}, {1, 10, 1}};
  REQUIRE(region.narrow(box));
  CHECK(box.low[2] == doctest::Approx(1.0 / 300));
  CHECK(box.high[2] == doctest::Approx(0.01));
  CHECK(box.low[1] == doctest::Approx(-4));
  CHECK(box.high[1] == doctest::Approx(2));
  box = {{1, -10, 0.02}, {1, 10, 1}};
  CHECK(!region.narrow(box));  // t is above 1/100
  box = {{1, 2.1, 0.001}, {1, 10, 1}};
  CHECK(!region.narrow(box));
  // Of a ball a box may be out though each of its features is not.
  region.within = 100;
  region.ranges.assign(2, {-100, 100});
  box = {{0.8, 0.8, 0}, {1, 1, 0.01}};
  CHECK(!region.narrow(box));
  box = {{0.7, 0.7, 0}, {1, 1, 0.01}};
  CHECK(region.narrow(box));
}

TEST_CASE("box_region: nearby() gives points of it, and leaves those that are") {
  Dice dice{std::mt19937_64(32)};
  for (const char* spec : {kSphere, kPlain})
    for (const NetBoundOptions& options : regions_of(3)) {
      const BoxRegion region = *box_region(net_with_bias(spec, 3), options);
      for (int draw = 0; draw < 40; ++draw) {
        Vector any;
        for (std::size_t k = 0; k < region.net.inputs; ++k) any.push_back(3 * dice.normal());
        const Vector near = region.nearby(any), x = region.input(near);
        for (std::size_t k = 0; k < x.size(); ++k) {
          CHECK(x[k] >= region.ranges[k].low);
          CHECK(x[k] <= region.ranges[k].high);
        }
        CHECK(std::sqrt(dot_of(x, x)) <= region.within * (1 + 1e-9));
        if (region.net.homogeneous) CHECK(near.back() > 0);
        if (std::isinf(region.within)) continue;
        Vector x_inside;
        for (std::size_t k = 0; k < 3; ++k)
          x_inside.push_back(0.5 * region.within * (fraction_of(dice) - 0.5));
        const Vector inside = variables_at(region, x_inside);
        CHECK(region.nearby(inside) == inside);
      }
    }
}

TEST_CASE("box_region: the variables are those that a norm sees, in any unit of x") {
  const auto homogeneous = [](const Net& net, const NetBoundOptions& options) {
    return box_region(net, options)->net.homogeneous;
  };
  const auto ranges = [](double wide, double middle = 0) {
    return NetBoundOptions{.ranges = std::vector<Interval>(3, {middle - wide, middle + wide}),
                           .boxes = 1};
  };
  for (const char* spec : {kSphere, kPlain})
    for (const double unit : {1.0, 1e-3, 1e6}) {
      CAPTURE(spec);
      CAPTURE(unit);
      Net net = net_with_bias(spec, 3);
      const Tensor weight = net.layout().member_view(net.flat(), 0, 0);
      Vector values = weight.to_vector<double>();
      for (double& of : values) of /= unit;
      copy(weight, Tensor::from(values, weight.shape()));
      CHECK(!homogeneous(net, {.within = 0.1 * unit}));
      CHECK(homogeneous(net, {.within = 30 * unit}));
      CHECK(!homogeneous(net, ranges(0.1 * unit)));
      CHECK(homogeneous(net, ranges(30 * unit)));
      CHECK(!homogeneous(net, ranges(30 * unit, 1000 * unit)));  // narrow, seen from 0
    }
  // Where a norm sees a sphere of them they are few enough from nearer on.
  const auto from = [&homogeneous](const char* spec) {
    double within = 0.1;
    while (!homogeneous(net_with_bias(spec, 3), {.within = within})) within *= 1.1;
    return within;
  };
  const double sphere = from("dense(9) rmsnorm dense(1)"),
               plain = from("dense(9) relu rmsnorm dense(1)");
  CHECK(sphere > 0.5);
  CHECK(plain > 2 * sphere);
  CHECK(plain < 3 * sphere);
  // Far out, and where no norm divides last, as far as |x| alone tells.
  const Net tanh = net_with_bias("dense(9) tanh dense(1)", 3);
  CHECK(!homogeneous(tanh, {.within = 29}));
  CHECK(homogeneous(tanh, {.within = 30}));
  CHECK(!homogeneous(tanh, ranges(1000)));
  CHECK(!homogeneous(net_with_bias("dense(9) relu dense(1)", 3), {.within = 1e6}));
}

TEST_CASE("net_bound boxes: in wide ranges, by direction") {
  for (const char* spec :
       {"dense(16) layernorm relu dense(16) relu dense(1)",
        "dense(16) relu dense(16) layernorm relu dense(1)", "dense(16) rmsnorm gelu dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 2, 12);
    constexpr int kSide = 500;
    const NetBoundOptions options{.ranges = {{-30, 60}, {-10, 90}}, .boxes = kBoxes};
    REQUIRE(box_region(net, options)->net.homogeneous);
    // Closer together near 0, where f is steep.
    const auto at = [](int i, double low, double high) {
      const double part = 2.0 * i / (kSide - 1) - 1, cubed = part * part * part;
      return cubed < 0 ? -cubed * low : cubed * high;
    };
    check_closed(bound_net(net, options), scanned(net, kSide * kSide, [&](int i) {
                   return Vector{at(i / kSide, -30, 60), at(i % kSide, -10, 90)};
                 }));
  }
}

TEST_CASE("box_cuts: the largest is found with few boxes, the same for any number of threads") {
  const Net net = random_net("dense(32) layernorm relu dense(32) relu dense(1)", 2, 5);
  const Interval scan = scanned(net, 200000, [](int i) {
    const double r = std::pow(10, -3 + 9.0 * (i / 400) / 499), at = 2 * M_PI * (i % 400) / 400;
    return Vector{r * std::cos(at), r * std::sin(at)};
  });
  const BoxRegion region = *box_region(net, {.boxes = 1});
  for (const double side : {1.0, -1.0}) {
    const auto value_at = [&](const Vector& point) {
      return side * box_net_at(region.net, point)[0];
    };
    const auto found = [&] {
      BoxCuts cuts(region, {side});
      cuts.go_on(150, 0);
      const Vector at = cuts.found_at();
      CHECK(value_at(at) == cuts.found());
      // Nothing near it is larger.
      for (std::size_t k = 0; k < at.size(); ++k)
        for (const double step : {-1e-2, 1e-2}) {
          Vector beside = at;
          beside[k] += step;
          CHECK(value_at(region.nearby(beside)) <= cuts.found() + 1e-4 * (scan.high - scan.low));
        }
      return cuts.found();
    };
    const double largest = side > 0 ? scan.high : -scan.low, by_boxes = found();
    CHECK(by_boxes >= largest - 1e-3 * (scan.high - scan.low));
    const ThreadLimit one(1);
    CHECK(found() == by_boxes);
  }
}

TEST_CASE("box_cuts: what was found stays, however many boxes there are") {
  const Net net = random_net("dense(24) gelu dense(24) layernorm relu dense(1)", 5, 3);
  const BoxRegion region = *box_region(net, {.within = 2, .boxes = 1});
  BoxCuts cuts(region, {1});
  double found = cuts.found(), bound = cuts.bound();
  for (std::int64_t boxes = 40; boxes < 6000; boxes += 40) {
    cuts.go_on(boxes, 0);
    CHECK(cuts.found() >= found);
    CHECK(cuts.bound() <= bound);
    CHECK(cuts.found() <= cuts.bound());
    found = cuts.found();
    bound = cuts.bound();
  }
}

}  // namespace
}  // namespace keel
