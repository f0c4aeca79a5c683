// Bounds by boxes of every x there is, and far out, against dense scans.
#include <doctest/doctest.h>

#include <cmath>

#include "scanned_net.h"

namespace keel {
namespace {

TEST_CASE("net_bound boxes: of every x there is") {
  for (const char* spec :
       {"dense(16) layernorm relu dense(16) relu dense(1)",
        "dense(16) relu dense(16) layernorm relu dense(1)", "dense(16) rmsnorm gelu dense(1)",
        "dense(16) leakyrelu dense(16) layernorm tanh dense(8) layernorm relu dense(1)",
        "dense(16) silu dense(16) layernorm relu dense(1)",
        "dense(16) residual(layernorm relu dense(16)) rmsnorm relu dense(1)",
        "dense(16) residual(tanh dense(16)) gelu dense(8) layernorm dense(1)"})
    for (const std::int64_t features : {1, 2}) {
      CAPTURE(spec);
      CAPTURE(features);
      const Net net = random_net(spec, features, 13);
      // Of every direction, from next to 0 to so far that nothing changes any more.
      const Interval found = scanned(net, 200000, [&](int i) {
        const double r = std::pow(10, -3 + 9.0 * (i / 400) / 499), at = 2 * M_PI * (i % 400) / 400;
        return features == 1 ? Vector{i % 2 == 0 ? r : -r}
                             : Vector{r * std::cos(at), r * std::sin(at)};
      });
      const NetBound bound = bound_net(net, {.boxes = kBoxes});
      check_closed(bound, found);
      // The dual's interval holds, too.
      const Interval dual = bound_net(net).outputs[0];
      CHECK(dual.low <= found.low);
      CHECK(dual.high >= found.high);
      for (std::size_t end = 0; end < 2; ++end) {
        const double at = net.predict(Tensor::from(bound.found_at[end], {1, features})).item();
        CHECK(std::abs(at - (end == 0 ? found.high : found.low)) <=
              3e-3 * (found.high - found.low));
      }
    }
}

TEST_CASE("net_bound boxes: far out as near, where something bounds the net") {
  for (const char* spec : {"dense(16) tanh dense(16) tanh dense(1)",
                           "dense(16) gelu dense(16) layernorm relu dense(1)",
                           "dense(16) residual(layernorm relu dense(16)) layernorm dense(1)"})
    for (const double within : {10.0, 30.0, 1e3, 1e6}) {
      CAPTURE(spec);
      CAPTURE(within);
      const Net net = random_net(spec, 2, 13);
      const Interval found = scanned(net, 300000, [&](int i) {
        const double r = within * std::pow(10, -11.0 * (i / 600) / 499),
                     at = 2 * M_PI * (i % 600) / 600;
        return Vector{r * std::cos(at), r * std::sin(at)};
      });
      const NetBound bound = bound_net(net, {.within = within, .boxes = kBoxes});
      check_closed(bound, found);
      for (const Vector& x : bound.found_at) CHECK(std::hypot(x[0], x[1]) <= within * (1 + 1e-12));
    }
}

TEST_CASE("net_bound boxes: a tanh of every x jumps far out, and is bounded all the same") {
  const Net one = random_net("dense(16) tanh dense(16) tanh dense(1)", 1, 13);
  check_closed(bound_net(one, {.boxes = kBoxes}), scanned(one, 40001, [](int i) {
                 return Vector{(i % 2 == 0 ? 1 : -1) * std::pow(10, -4 + 12.0 * i / 40000)};
               }));
  const Net two = random_net("dense(16) tanh dense(16) tanh dense(1)", 2, 13);
  const Interval found = scanned(two, 300000, [](int i) {
    const double r = std::pow(10, -3 + 9.0 * (i / 600) / 499), at = 2 * M_PI * (i % 600) / 600;
    return Vector{r * std::cos(at), r * std::sin(at)};
  });
  const Interval proved = bound_net(two, {.boxes = kBoxes}).outputs[0],
                 dual = bound_net(two).outputs[0];
  CHECK(proved.low <= found.low);
  CHECK(proved.high >= found.high);
  CHECK(proved.high - proved.low <= 1.1 * (found.high - found.low));
  CHECK(proved.high - proved.low <= dual.high - dual.low);
}

TEST_CASE("net_bound boxes: all that are asked for, whatever a look says") {
  const Net wide = random_net("dense(16) relu dense(16) layernorm relu dense(1)", 8, 13);
  NetBoundOptions options{.pieces = 0, .boxes = 9000};
  const NetBound guessed = bound_net(wide, options);
  options.all_boxes = true;
  const NetBound all = bound_net(wide, options);
  CHECK(guessed.boxes < 9000);
  CHECK(all.boxes >= 9000);
  CHECK(all.boxes <= 9000 + 2 * 32);
  CHECK(!all.closed);
  CHECK(all.outputs[0].low >= guessed.outputs[0].low);
  CHECK(all.outputs[0].high <= guessed.outputs[0].high);

  // Four features behind a norm at once.
  const Net net = random_net("dense(16) layernorm relu dense(16) relu dense(1)", 4, 13);
  const NetBound closed = bound_net(net, {.boxes = 60000, .all_boxes = true});
  CHECK(closed.closed);
  const Interval proved = closed.outputs[0], dual = bound_net(net, {.pieces = 0}).outputs[0];
  CHECK(proved.high - proved.low < 0.96 * (dual.high - dual.low));
  for (std::size_t end = 0; end < 2; ++end) {
    const double f = net.predict(Tensor::from(closed.found_at[end], {1, 4})).item(),
                 wanted = end == 0 ? proved.high : proved.low;
    CHECK(std::abs(f - wanted) <= 1.1e-3 * (proved.high - proved.low));
  }
}

}  // namespace
}  // namespace keel
