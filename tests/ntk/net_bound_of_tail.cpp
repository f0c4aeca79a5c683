// Bounds of what ends a larger net, which may begin with its norm.
#include <doctest/doctest.h>

#include "../../ntk/net_bound.h"
#include "naive_tail.h"

namespace keel {
namespace {

Net random_tail(const std::string& spec, std::int64_t inputs, std::uint64_t seed) {
  return random_net(parse_tail(spec), inputs, seed);
}

TEST_CASE("net_bound of a tail: a norm and a dense layer, in closed form") {
  for (const char* norm : {"layernorm", "rmsnorm"})
    for (std::int64_t width : {1, 2, 3, 33, 256}) {
      CAPTURE(norm);
      CAPTURE(width);
      const Net net = random_tail(fmt::format("{} dense(3)", norm), width, 7);
      const bool centred = net.spec()[0].kind == LayerKind::layernorm;
      const auto units = static_cast<std::size_t>(width);
      const Vector gain = net.values(0), weight = net.values(centred ? 2 : 1),
                   constant = net.values(centred ? 3 : 2);
      const Vector bias = centred ? net.values(1) : Vector(units, 0.0);
      const NetBound bound = bound_net(net);
      REQUIRE(bound.bounded);
      CHECK(bound.word == 1);
      CHECK(bound.width == width);
      CHECK(bound.rank == width - centred);
      CHECK(bound.activations == 0);
      REQUIRE(bound.outputs.size() == 3);
      for (std::size_t o = 0; o < 3; ++o) {
        Vector v(units);
        double middle = constant[o], mean = 0, squares = 0;
        for (std::size_t j = 0; j < units; ++j) {
          v[j] = weight[o * units + j] * gain[j];
          middle += weight[o * units + j] * bias[j];
          mean += v[j] / static_cast<double>(width);
        }
        for (double value : v) squares += std::pow(value - (centred ? mean : 0), 2);
        const double half = std::sqrt(static_cast<double>(width) * squares);
        const double room = 1e-7 * (half + std::abs(middle)) + 1e-12;
        CHECK(bound.outputs[o].low <= middle - half);
        CHECK(bound.outputs[o].low >= middle - half - room);
        CHECK(bound.outputs[o].high >= middle + half);
        CHECK(bound.outputs[o].high <= middle + half + room);
      }
    }
}

TEST_CASE("net_bound of a tail: that of the same layers behind whatever dense layer") {
  for (const char* tail : {"layernorm dense(2)", "layernorm relu dense(7) gelu dense(2)",
                           "rmsnorm silu dense(3) residual(relu dense(3)) dense(1)",
                           "gelu layernorm dense(5) tanh dense(1)"}) {
    CAPTURE(tail);
    const Net own = random_tail(tail, 6, 3);
    Net whole = random_net(fmt::format("dense(6) {}", tail), 2, 4);
    for (std::size_t p = 0; p < own.layout().entries().size(); ++p) {
      const Tensor from = own.layout().member_view(own.flat(), p, 0);
      copy(whole.layout().member_view(whole.flat(), p + 2, 0), from);
    }
    NetBoundOptions options;
    options.steps = 50;
    options.pieces = 20;
    options.narrow = false;
    const NetBound wanted = bound_net(whole, options);
    options.narrow = true;
    const NetBound bound = bound_net(own, options);
    REQUIRE(bound.bounded);
    CHECK(bound.word + 1 == wanted.word);
    REQUIRE(bound.outputs.size() == wanted.outputs.size());
    for (std::size_t o = 0; o < bound.outputs.size(); ++o) {
      CHECK(bound.outputs[o].low == wanted.outputs[o].low);
      CHECK(bound.outputs[o].high == wanted.outputs[o].high);
    }
  }
  CHECK(!bound_net(random_tail("relu dense(1)", 3, 1)).bounded);
  const NetBound box = bound_net(random_tail("tanh dense(1)", 3, 1));
  CHECK(box.bounded);
  CHECK(box.kind == LayerKind::tanh);
}

// A mean over a sequence's places or an image's pixels, between norm and head, is one of outputs of
// the norm, which their ball has too.
TEST_CASE("net_bound of a tail: it holds of a mean of several of the norm's outputs") {
  for (const char* tail :
       {"layernorm dense(2)", "layernorm relu dense(1)", "rmsnorm gelu dense(5) relu dense(2)",
        "layernorm dense(4) silu dense(1)", "layernorm tanh dense(3) gelu dense(1)"})
    for (std::int64_t width : {1, 2, 3, 17}) {
      CAPTURE(tail);
      CAPTURE(width);
      const Net net = random_tail(tail, width, 11);
      NetBoundOptions options;
      options.steps = 50;
      options.pieces = 20;
      const NetBound bound = bound_net(net, options);
      const Naive naive(net);
      Vector nearest(bound.outputs.size(), 0.0);  // to an end, as a share of half the interval
      for (std::uint64_t draw = 0; draw < 400; ++draw) {
        const std::uint64_t places = 1 + draw % 4;
        Vector h(static_cast<std::size_t>(width));
        for (std::uint64_t place = 0; place < places; ++place) {
          Vector x = draws(static_cast<std::size_t>(width), 1000 * draw + place);
          for (double& value : x) value *= std::pow(10.0, static_cast<double>(draw % 7) - 2);
          const Vector n = Naive::standardised(x, net.spec()[0]);
          for (std::size_t j = 0; j < h.size(); ++j) h[j] += n[j] / static_cast<double>(places);
        }
        const Vector f = naive.behind(h);
        for (std::size_t o = 0; o < f.size(); ++o) {
          const Interval& of = bound.outputs[o];
          CHECK(of.low <= f[o]);
          CHECK(f[o] <= of.high);
          const double half = (of.high - of.low) / 2;
          nearest[o] = std::max(nearest[o], half > 0 ? std::abs(f[o] - of.low - half) / half : 1);
        }
      }
      if (width > 1)  // of mean 0 there is one of one unit
        for (double share : nearest) CHECK(share > 0.1);
    }
}

}  // namespace
}  // namespace keel
