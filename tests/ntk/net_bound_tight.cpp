// How tight a net's bound is.
#include <doctest/doctest.h>

#include "../../ntk/net_bound.h"
#include "../sanitized.h"
#include "naive_tail.h"

namespace keel {
namespace {

TEST_CASE("net_bound: two units, h = (s, -s), against every s") {
  for (const char* phi : {"relu", "gelu", "silu"})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(phi);
      CAPTURE(seed);
      const Net net = random_net(fmt::format("dense(2) {0} layernorm {0} dense(1)", phi), 1, seed);
      const Interval found = of_every_s(net);
      NetBoundOptions options;
      options.steps = 3000;
      const Interval bound = bound_net(net, options).outputs[0];
      CHECK(bound.low <= found.low);
      CHECK(found.high <= bound.high);
      const double room = 0.35 * (found.high - found.low);  // a duality gap is the rule here
      CHECK(bound.low > found.low - room - 1e-2);
      CHECK(bound.high < found.high + room + 1e-2);
    }
}

TEST_CASE("net_bound: two units of an RMSNorm, against all of the disc") {
  for (const char* phi : {"relu", "gelu", "silu"})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(phi);
      CAPTURE(seed);
      const Net net = random_net(fmt::format("dense(2) {0} rmsnorm {0} dense(1)", phi), 1, seed);
      const Naive naive(net);
      Interval found{1e300, -1e300};
      for (int i = 0; i < 720; ++i)
        for (int j = 0; j <= 100; ++j) {
          const double angle = i * std::acos(-1) / 360, length = std::sqrt(2) * j / 100;
          const double value =
              naive.behind({length * std::cos(angle), length * std::sin(angle)})[0];
          found = {std::min(found.low, value), std::max(found.high, value)};
        }
      NetBoundOptions options;
      options.steps = 3000;
      const Interval bound = bound_net(net, options).outputs[0];
      CHECK(bound.low <= found.low);
      CHECK(found.high <= bound.high);
      const double room = 0.35 * (found.high - found.low);  // as of a Layer Norm's two
      CHECK(bound.low > found.low - room - 1e-2);
      CHECK(bound.high < found.high + room + 1e-2);
    }
}

// A wide separable f's largest value: units one by one, at the price of a length and of a mean, and
// then all together towards the slope.
double climbed(const Net& net, double side) {
  const Naive naive(net);
  const Vector zero(naive.width);
  const double constant = naive.behind(zero)[0];
  std::vector<Vector> alone(naive.width);  // f of one unit, at -12, -11.95, ...
  for (std::size_t i = 0; i < naive.width; ++i)
    for (int t = 0; t <= 480; ++t) {
      Vector h = zero;
      h[i] = -12 + 0.05 * t;
      alone[i].push_back(side * (naive.behind(h)[0] - constant));
    }
  double best = -1e300;
  for (double length : {0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15})
    for (double mean : {-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1}) {
      if (!naive.centred && mean != 0) continue;
      Vector h(naive.width);
      for (std::size_t i = 0; i < h.size(); ++i) {
        double largest = -1e300;
        for (int k = 0; k <= 480; ++k) {
          const double t = -12 + 0.05 * k;
          const double value = alone[i][static_cast<std::size_t>(k)] - t * (length * t + mean);
          if (value > largest) largest = value, h[i] = t;
        }
      }
      h = normed(h, 1, naive.centred);
      for (int step = 0; step < 5; ++step) {
        const double at = naive.behind(h)[0];
        best = std::max(best, side * at);
        Vector slope(h.size());
        for (std::size_t i = 0; i < h.size(); ++i) {
          Vector moved = h;
          moved[i] += 1e-5;
          slope[i] = side * (naive.behind(moved)[0] - at);
        }
        h = normed(slope, 1, naive.centred);
      }
    }
  return best;
}

TEST_CASE("net_bound: tight, where Shapley and Folkman say that it is") {
  for (const char* norm : {"layernorm", "rmsnorm"})
    for (const std::string phi : {"relu", "gelu", "silu"}) {
      if (test::kSanitized && phi != "relu") continue;
      CAPTURE(norm);
      CAPTURE(phi);
      const Net net = random_net(fmt::format("dense(128) {1} {0} {1} dense(1)", norm, phi), 4, 11);
      const Interval bound = bound_net(net).outputs[0];
      const double high = climbed(net, 1), low = -climbed(net, -1);
      CHECK(high <= bound.high);
      CHECK(low >= bound.low);
      CHECK(high > 0.95 * bound.high);
      CHECK(low < 0.95 * bound.low);
    }
}

TEST_CASE("net_bound: two layers behind a Layer Norm of few inputs") {
  for (const std::string phi : {"relu", "gelu", "silu"}) {
    if (test::kSanitized && phi != "relu") continue;
    CAPTURE(phi);
    const Net net =
        random_net(fmt::format("dense(48) layernorm {0} dense(24) {0} dense(1)", phi), 3, 12);
    const NetBound bound = bound_net(net);
    CHECK(bound.rank == 4);
    CHECK(bound.width == 48);
    CHECK(bound.word == 2);
    CHECK(bound.activations == 2);
    const Interval found = found_ahead(net, 0);
    CHECK(found.high - found.low > 0.3 * (bound.outputs[0].high - bound.outputs[0].low));
    const NetBound whole = bound_net(net, {.narrow = false});
    CHECK(whole.rank == 47);
    CHECK(bound.largest() < 0.7 * whole.largest());
  }
}

}  // namespace
}  // namespace keel
