// A tanh bounds what is behind it, and leaky relu is bounded like relu.
#include <doctest/doctest.h>

#include <limits>

#include "../../ntk/tail_dual.h"
#include "naive_tail.h"

namespace keel {
namespace {

// A point of the box [-1, 1]^n: a corner, or any.
Vector box_point(std::size_t n, std::uint64_t seed) {
  Vector point = draws(n, seed);
  for (double& value : point)
    value = seed % 2 == 0 ? (value < 0 ? -1 : 1) : std::clamp(value, -1.0, 1.0);
  return point;
}

// The largest side * f over points of the box: random ones, then one coordinate after the other
// turned round, as long as that helps.
double largest_in_box(const Tail& tail, std::size_t output, double side) {
  const auto n = static_cast<std::size_t>(tail.set.width);
  double largest = -1e300;
  for (std::uint64_t start = 0; start < 20; ++start) {
    Vector best = box_point(n, start);
    double most = side * tail_at(tail, best)[output];
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < n; ++i)
        for (const double value : {-1.0, -0.3, 0.0, 0.3, 1.0}) {
          Vector other = best;
          other[i] = value;
          const double there = side * tail_at(tail, other)[output];
          if (!(there > most)) continue;
          most = there;
          best = std::move(other);
          better = true;
        }
    }
    largest = std::max(largest, most);
  }
  return largest;
}

TEST_CASE("net_bound: behind one tanh the interval is exactly that of all signs") {
  for (int width : {1, 2, 33}) {
    const Net net = random_net(fmt::format("dense({}) tanh dense(2)", width), 2, 5);
    const NetBound bound = bound_net(net);
    REQUIRE(bound.bounded);
    CHECK(bound.kind == LayerKind::tanh);
    CHECK(bound.word == 2);
    CHECK(bound.width == width);
    CHECK(bound.rank == width);
    CHECK(bound.activations == 0);
    const Vector w = net.values(2), b = net.values(3);
    for (std::size_t o = 0; o < 2; ++o) {
      double sum = 0;
      for (std::size_t j = 0; j < w.size() / 2; ++j) sum += std::abs(w[o * w.size() / 2 + j]);
      CHECK(bound.outputs[o].high >= b[o] + sum);
      CHECK(bound.outputs[o].high == doctest::Approx(b[o] + sum).epsilon(1e-8));
      CHECK(bound.outputs[o].low <= b[o] - sum);
      CHECK(bound.outputs[o].low == doctest::Approx(b[o] - sum).epsilon(1e-8));
    }
  }
  // As many inputs as units reach every sign: nothing is between what is found and what is proved.
  const Net square = random_net("dense(2) tanh dense(1)", 2, 11);
  const NetBound bound = bound_net(square);
  const Interval found = found_ahead(square, 0);
  CHECK(found.high == doctest::Approx(bound.outputs[0].high).epsilon(1e-6));
  CHECK(found.low == doctest::Approx(bound.outputs[0].low).epsilon(1e-6));
}

TEST_CASE("net_bound: nothing in tanh's box, and no input, passes it; nor is it far from them") {
  std::uint64_t seed = 0;
  for (const char* spec :
       {"dense(1) tanh dense(3) relu dense(1)", "dense(9) tanh dense(7) relu dense(2)",
        "dense(9) tanh dense(8) tanh dense(1)",
        "dense(4) relu dense(9) tanh dense(6) gelu dense(1)", "dense(5) tanh tanh dense(1)",
        "dense(5) tanh leakyrelu(slope=0.5) dense(1)",
        "dense(7) tanh dense(6) dense(5) silu dense(1)",
        "dense(6) tanh dense(5) leakyrelu dense(5) tanh dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 3, ++seed);
    const NetBound bound = bound_net(net);
    CHECK(bound.kind == LayerKind::tanh);
    const Tail tail = tail_of(net);
    for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
      const Interval ahead = found_ahead(net, i), of = bound.outputs[i];
      const double high = largest_in_box(tail, i, 1), low = -largest_in_box(tail, i, -1);
      CAPTURE(high);
      CAPTURE(low);
      CAPTURE(of.high);
      CAPTURE(of.low);
      CHECK(of.low <= ahead.low);
      CHECK(ahead.high <= of.high);
      CHECK(of.low <= low);
      CHECK(high <= of.high);
      CHECK(of.high - of.low < 1.5 * (high - low));
    }
  }
}

// What tanh makes of large numbers is no larger: nor is a bound.
TEST_CASE("net_bound: a tanh of numbers of any size is bounded by signs, or better") {
  for (const char* spec :
       {"dense(6) tanh dense(6) tanh dense(1)", "dense(6) layernorm tanh dense(6) tanh dense(1)"})
    for (double size : {10.0, 1e3, 1e6, 1e15, 1e60, 1e200}) {
      CAPTURE(spec);
      CAPTURE(size);
      const Net net = random_net(spec, 2, 9);
      const std::size_t last = net.layout().entries().size() - 2;
      for (std::size_t p : {last - 2, last - 1}) {
        Vector values = net.values(p);
        for (double& value : values) value *= size;
        const Tensor home = net.layout().member_view(net.flat(), p, 0);
        copy(home, Tensor::from(values, home.shape()));
      }
      double sum = 0;
      for (double weight : net.values(last)) sum += std::abs(weight);
      const double middle = net.values(last + 1)[0];
      const Interval of = bound_net(net).outputs[0], found = found_ahead(net, 0);
      CHECK(of.high <= middle + sum + 1e-6);
      CHECK(of.low >= middle - sum - 1e-6);
      CHECK(found.high <= of.high);
      CHECK(of.low <= found.low);
    }
}

TEST_CASE("activations: what they stay in on an interval, and how far they go") {
  for (const LayerSpec& layer :
       {LayerSpec{.kind = LayerKind::relu}, LayerSpec{.kind = LayerKind::leakyrelu, .slope = 0.3},
        LayerSpec{.kind = LayerKind::gelu}, LayerSpec{.kind = LayerKind::silu},
        LayerSpec{.kind = LayerKind::tanh}}) {
    const Activation phi = layer;
    const Vector ends = draws(200, 5);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const double a = 3 * std::min(ends[i], ends[i + 1]), b = 3 * std::max(ends[i], ends[i + 1]);
      const Interval range = phi.range(a, b);
      for (int step = 0; step <= 100; ++step) {
        const double z = a + (b - a) * step / 100, value = phi(z);
        CHECK(range.low <= value);
        CHECK(value <= range.high + 1e-14);  // of b, of which this z may be a rounding off
        CHECK(std::abs(value - phi(a)) <= 1.13 * phi.spread(z - a) + 1e-14);
        if (phi.least()) CHECK(value >= *phi.least());
        if (!phi.kinked()) CHECK(std::abs(value) <= phi.largest(a, b) + 1e-14);
      }
    }
  }
}

TEST_CASE(
    "net_bound: of several words the last norm, or else the first tanh, is what it starts from") {
  const auto of = [](const char* spec) { return bound_net(random_net(spec, 2, 3)); };
  CHECK(of("dense(4) tanh dense(4) layernorm relu dense(1)").kind == LayerKind::layernorm);
  CHECK(of("dense(4) tanh dense(4) layernorm relu dense(1)").word == 4);
  CHECK(of("dense(4) rmsnorm tanh dense(4) tanh dense(1)").kind == LayerKind::rmsnorm);
  CHECK(of("dense(4) rmsnorm tanh dense(4) tanh dense(1)").activations == 2);
  CHECK(of("dense(4) relu identity dense(4) tanh dense(4) tanh dense(1)").word == 5);
  CHECK(of("dense(4) relu dense(4) tanh dense(4) tanh dense(1)").activations == 1);
  CHECK(!of("dense(4) relu dense(4) leakyrelu dense(1)").bounded);
}

// Multipliers of the first units have nothing to take from, and those of later ones bound f all the
// same.
TEST_CASE("tail_dual: any multipliers bound f over a box") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Net net = random_net("dense(6) tanh dense(5) relu dense(4) tanh dense(1)", 2, seed);
    const Tail tail = tail_of(net);
    const UnitRows rows(tail);
    std::vector<Units> layers;
    for (std::size_t l = 0; l < 3; ++l) {
      Units units;
      units.activation = tail.activations[l];
      const std::size_t n = tail.affine[l].bias.size();
      units.origin = tail.affine[l].bias;
      units.scale = Vector(n, 1);
      if (l > 0) {
        units.from = tail.affine[l];
        units.from_sizes = weight_sizes(units.from);
        units.origin = affine_at(units.from, layers[l - 1].centre);
        for (std::size_t i = 0; i < n; ++i) {
          units.scale[i] = 0;
          for (std::size_t j = 0; j < layers[l - 1].size(); ++j)
            units.scale[i] += std::abs(units.from.weight[i * layers[l - 1].size() + j]) * 20;
        }
      }
      units.summed = Vector(n, 1);
      units.low = Vector(n, -1);
      units.high = Vector(n, 1);
      units.centre = l == 0 ? Vector(n, 0) : draws(n, seed + l);
      layers.push_back(units);
    }
    const Vector& v = tail.affine[3].weight;
    const double constant = tail.affine[3].bias[0];
    double largest = -1e300;
    for (std::uint64_t at = 0; at < 300; ++at)
      largest = std::max(largest, tail_at(tail, box_point(6, at))[0]);
    for (bool one_kappa : {false, true}) {
      const TailDual dual(rows, tail.set, layers, 3, one_kappa);
      Vector x = draws(dual.multipliers().size, seed + 50), gradient;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (dual.multipliers().not_negative[i]) x[i] = std::abs(x[i]);
      CHECK(dual(v, constant, x, 1e-6, gradient).bound >= largest);
    }
  }
}

TEST_CASE("net_bound: a norm behind leaky relu has an image, and no cone") {
  for (const char* spec : {"dense(24) leakyrelu dense(12) layernorm dense(1)",
                           "dense(24) leakyrelu(slope=0.1) dense(9) rmsnorm relu dense(1)",
                           "dense(6) layernorm leakyrelu dense(12) layernorm dense(1)",
                           "dense(9) tanh dense(12) layernorm dense(1)"})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(spec);
      CAPTURE(seed);
      const Net net = random_net(spec, 2, seed);
      const NetBound narrow = bound_net(net), whole = bound_net(net, {.narrow = false});
      const bool leaky = std::string(spec).find("leaky") != std::string::npos;
      if (leaky) CHECK(!narrow.cone);
      const Interval found = found_ahead(net, 0);
      CHECK(narrow.outputs[0].low <= found.low);
      CHECK(found.high <= narrow.outputs[0].high);
      CHECK(narrow.outputs[0].high <= whole.outputs[0].high + 1e-6 * whole.largest());
    }
  // What it is for: columns that lie on one side of a plane, of which relu gives sums alone.
  const NetBound bound =
      bound_net(random_net("dense(24) leakyrelu dense(48) layernorm dense(1)", 2, 1));
  CHECK(bound.image);
}

}  // namespace
}  // namespace keel
