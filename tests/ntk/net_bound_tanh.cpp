// A tanh or sigmoid bounds what is behind it, and leaky relu is bounded like relu.
#include <doctest/doctest.h>

#include <limits>

#include "../sanitized.h"
#include "dual_problem.h"

namespace keel {
namespace {

// A number from -1 to 1 as one between the ends of a tanh, or of a sigmoid.
double in_box(double value, LayerKind of) {
  return of == LayerKind::tanh ? value : 0.5 * (value + 1);
}

// A point of the box [-1, 1]^n, or [0, 1]^n: a corner, or any.
Vector box_point(std::size_t n, std::uint64_t seed, LayerKind of) {
  Vector point = draws(n, seed);
  for (double& value : point)
    value = in_box(seed % 2 == 0 ? (value < 0 ? -1 : 1) : std::clamp(value, -1.0, 1.0), of);
  return point;
}

// The largest side * f over points of the box: random ones, then one coordinate after the other
// turned round, as long as that helps.
double largest_in_box(const Tail& tail, std::size_t output, double side) {
  const auto n = static_cast<std::size_t>(tail.set.width);
  double largest = -1e300;
  for (std::uint64_t start = 0; start < 20; ++start) {
    Vector best = box_point(n, start, tail.kind);
    double most = side * tail_at(tail, best)[output];
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < n; ++i)
        for (const double value : {-1.0, -0.3, 0.0, 0.3, 1.0}) {
          Vector other = best;
          other[i] = in_box(value, tail.kind);
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
        "dense(6) tanh dense(5) leakyrelu dense(5) tanh dense(1)",
        "dense(1) sigmoid dense(3) relu dense(1)", "dense(9) sigmoid dense(8) sigmoid dense(1)",
        "dense(5) softplus dense(9) sigmoid dense(6) softplus dense(2)",
        "dense(5) sigmoid tanh dense(1)",
        "dense(4) elu dense(6) tanh dense(5) elu(alpha=0.3) dense(1)",
        "dense(6) tanh dense(5) selu dense(4) elu(alpha=2) dense(1)",
        "dense(6) tanh dense(5) sigmoid dense(4) relu dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 3, ++seed);
    const NetBound bound = bound_net(net);
    const Tail tail = tail_sum_of(net)[0].tail;
    CHECK(bounds_units(bound.kind));
    CHECK(bound.kind == tail.kind);
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

TEST_CASE("net_bound: behind one sigmoid it is exactly that of all zeros and ones") {
  for (int width : {1, 2, 33}) {
    const Net net = random_net(fmt::format("dense({}) sigmoid dense(2)", width), 2, 6);
    const NetBound bound = bound_net(net);
    CHECK(bound.kind == LayerKind::sigmoid);
    CHECK(bound.word == 2);
    CHECK(bound.rank == width);
    CHECK(bound.activations == 0);
    const Vector w = net.values(2), b = net.values(3);
    for (std::size_t o = 0; o < 2; ++o) {
      double above = b[o], below = b[o];
      for (std::size_t j = 0; j < w.size() / 2; ++j) {
        const double weight = w[o * w.size() / 2 + j];
        (weight > 0 ? above : below) += weight;
      }
      CHECK(bound.outputs[o].high >= above);
      CHECK(bound.outputs[o].high == doctest::Approx(above).epsilon(1e-7));
      CHECK(bound.outputs[o].low <= below);
      CHECK(bound.outputs[o].low == doctest::Approx(below).epsilon(1e-7));
    }
  }
}

// What tanh makes of large numbers is no larger: nor is a bound.
TEST_CASE("net_bound: a tanh of numbers of any size is bounded by signs, or better") {
  for (const char* spec :
       {"dense(6) tanh dense(6) tanh dense(1)", "dense(6) layernorm tanh dense(6) tanh dense(1)"})
    for (double size : {10.0, 1e3, 1e6, 1e15, 1e60, 1e200}) {
      if (test::kSanitized && size > 10 && size < 1e200) continue;
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

TEST_CASE(
    "net_bound: of several words the last norm, or else the first tanh, is what it starts from") {
  const auto of = [](const char* spec) { return bound_net(random_net(spec, 2, 3)); };
  CHECK(of("dense(4) tanh dense(4) layernorm relu dense(1)").kind == LayerKind::layernorm);
  CHECK(of("dense(4) tanh dense(4) layernorm relu dense(1)").word == 4);
  CHECK(of("dense(4) rmsnorm tanh dense(4) tanh dense(1)").kind == LayerKind::rmsnorm);
  CHECK(of("dense(4) rmsnorm tanh dense(4) tanh dense(1)").activations == 2);
  CHECK(of("dense(4) relu identity dense(4) tanh dense(4) tanh dense(1)").word == 5);
  CHECK(of("dense(4) relu dense(4) tanh dense(4) tanh dense(1)").activations == 1);
  CHECK(of("dense(4) sigmoid dense(4) tanh dense(1)").kind == LayerKind::sigmoid);
  CHECK(!of("dense(4) softplus dense(4) leakyrelu dense(1)").bounded);
}

// Multipliers of the first units have nothing to take from, and those of later ones bound f all the
// same.
TEST_CASE("tail_dual: any multipliers bound f over a box") {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (bool one_kappa : {false, true}) {
      CAPTURE(seed);
      CAPTURE(one_kappa);
      const bool tanh = seed % 2 == 0;
      const DualProblem problem(tanh ? "dense(6) tanh dense(5) relu dense(4) tanh dense(1)"
                                     : "dense(6) sigmoid dense(5) softplus dense(4) tanh dense(1)",
                                seed, one_kappa);
      double largest = -1e300;
      for (std::uint64_t at = 0; at < 300; ++at)
        largest = std::max(largest, tail_at(problem.tail, box_point(6, at, problem.tail.kind))[0]);
      Vector gradient;
      CHECK(problem.at(problem.multipliers(seed + 50), gradient) >= largest);
    }
}

TEST_CASE("net_bound: a norm behind leaky relu has an image and no cone, behind tanh a cone") {
  for (const char* spec : {"dense(24) leakyrelu dense(12) layernorm dense(1)",
                           "dense(24) leakyrelu(slope=0.1) dense(9) rmsnorm relu dense(1)",
                           "dense(6) layernorm leakyrelu dense(12) layernorm dense(1)",
                           "dense(6) prelu dense(12) layernorm dense(1)",
                           "dense(24) prelu(per_unit=1) dense(12) layernorm dense(1)",
                           "dense(6) layernorm prelu(per_unit=1) dense(12) layernorm dense(1)",
                           "dense(9) tanh dense(12) layernorm dense(1)",
                           "dense(9) sigmoid dense(12) layernorm dense(1)",
                           "dense(6) softplus dense(12) layernorm dense(1)",
                           "dense(6) elu dense(12) layernorm dense(1)",
                           "dense(6) elu(alpha=2) dense(12) layernorm dense(1)",
                           "dense(6) selu dense(12) layernorm dense(1)"})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(spec);
      CAPTURE(seed);
      const Net net = random_net(spec, 2, seed);
      const NetBound narrow = bound_net(net), whole = bound_net(net, {.narrow = false});
      // What goes below every number has no cone: a slope above 0 does.
      bool below = false;
      for (std::size_t i = 0; i < net.spec().size(); ++i) {
        if (net.spec()[i].kind == LayerKind::leakyrelu) below = true;
        if (net.spec()[i].kind != LayerKind::prelu) continue;
        for (double slope : net.values(net.first_parameter(i))) below = below || slope > 0;
      }
      CHECK(narrow.cone == !below);
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
