// Bounds and searches that are ended early: what they have by then holds.
#include <doctest/doctest.h>

#include "../../ntk/box_bound.h"
#include "../../ntk/search.h"
#include "naive_tail.h"

namespace keel {
namespace {

// A bound of six features that boxes take long to tighten, ended once there are `most` of them.
NetBound bound_until(const Net& net, std::int64_t most, NetBoundOptions options,
                     std::vector<Interval>& told) {
  std::atomic<bool> stop{most == 0};
  options.stop = &stop;
  options.progress = [&](const std::vector<Interval>& outputs, std::int64_t boxes) {
    REQUIRE(outputs.size() == static_cast<std::size_t>(net.output_width()));
    told.push_back(outputs.back());
    stop = stop || boxes >= most;
  };
  return bound_net(net, options);
}

TEST_CASE("net_bound: stopped at any time, what has been proved by then holds") {
  for (const char* spec :
       {"dense(8) layernorm relu dense(8) relu dense(1)", "dense(8) relu layernorm gelu dense(2)",
        "dense(8) tanh dense(8) tanh dense(1)",
        "dense(8) rmsnorm residual(dense(8) layernorm relu) dense(1)"}) {
    CAPTURE(spec);
    const Net net = random_net(spec, 6, 21);
    for (const double within : {kInfinity, 2.0})
      for (const std::int64_t most : {0, 1, 5000}) {
        CAPTURE(within);
        CAPTURE(most);
        std::vector<Interval> told;
        const NetBound bound =
            bound_until(net, most, {.within = within, .boxes = 1000000, .all_boxes = true}, told);
        REQUIRE(bound.bounded);
        const std::size_t last = bound.outputs.size() - 1;
        const Interval found = found_ahead(
            net, last, {.farthest = std::min(within, 1e6), .directions = 32, .steps = 20});
        CHECK(bound.outputs[last].low <= found.low);
        CHECK(found.high <= bound.outputs[last].high);
        CHECK(std::isfinite(bound.largest()));
        // Ended at once, but for the turn that it was in.
        CHECK(told.empty() == (most == 0));
        CHECK(bound.boxes <= most + 1024);
        for (std::size_t i = 1; i < told.size(); ++i) {
          CHECK(told[i].low >= told[i - 1].low);
          CHECK(told[i].high <= told[i - 1].high);
        }
        if (told.empty()) continue;
        CHECK(bound.outputs[last].low >= told.back().low);
        CHECK(bound.outputs[last].high <= told.back().high);
      }
  }
}

TEST_CASE(
    "net_bound: stopped at once, nothing is tightened; of many features the dual comes first") {
  const Net net = random_net("dense(8) layernorm relu dense(8) relu dense(1)", 6, 21);
  const auto in = [](const Interval& of, const Interval& wider) {
    return of.low >= wider.low && of.high <= wider.high;
  };
  std::vector<Interval> told;
  const Interval none = bound_until(net, 0, {.pieces = 0}, told).outputs[0],
                 pieces = bound_until(net, 0, {.pieces = 32}, told).outputs[0],
                 descended = bound_net(net, {.pieces = 0}).outputs[0],
                 dual = bound_net(net).outputs[0];
  CHECK(pieces.low == none.low);
  CHECK(pieces.high == none.high);
  CHECK(in(descended, none));
  CHECK(descended.high - descended.low < 0.99 * (none.high - none.low));
  // Behind the first looks, at which the dual is there.
  const Interval stopped =
      bound_until(net, 9000, {.boxes = 1000000, .all_boxes = true}, told).outputs[0];
  CHECK(in(stopped, dual));
  CHECK(!in(told.front(), dual));
  CHECK(in(told.back(), dual));
}

TEST_CASE("box_bound: it closes in on both ends at once, and who watches changes nothing") {
  const Net net = random_net("dense(8) layernorm relu dense(8) relu dense(1)", 6, 21);
  const Interval any{-kInfinity, kInfinity};
  const NetBoundOptions options{.boxes = 40000, .all_boxes = true};
  BoxBound alone(net, options);
  alone.go_on({any});
  std::atomic<bool> never{false};
  std::vector<std::pair<std::int64_t, Interval>> told;  // and at how many boxes
  NetBoundOptions watched = options;
  watched.stop = &never;
  watched.progress = [&](const std::vector<Interval>& outputs, std::int64_t boxes) {
    told.emplace_back(boxes, outputs[0]);
  };
  BoxBound same(net, watched);
  same.go_on({any});
  CHECK(same.outputs()[0].low == alone.outputs()[0].low);
  CHECK(same.outputs()[0].high == alone.outputs()[0].high);
  CHECK(same.boxes() == alone.boxes());
  CHECK(same.boxes() >= 40000);
  // Behind the first looks, and half-way from there to the end.
  const auto at = [&](std::int64_t boxes) {
    return std::find_if(told.begin(), told.end(), [&](const auto& of) { return of.first >= boxes; })
        ->second;
  };
  const Interval looked = at(9000), later = at(24000), last = told.back().second;
  CHECK(later.low > looked.low);
  CHECK(later.high < looked.high);
  CHECK(last.low > later.low);
  CHECK(last.high < later.high);
}

TEST_CASE("search: stopped, it gives the best of the rays that it had begun with") {
  const Net net = random_net("dense(8) layernorm relu dense(8) relu dense(1)", 6, 21);
  std::atomic<bool> stop{false};
  std::int64_t calls = 0;
  const RowFunction f = [&](const Tensor& x) {
    ++calls;
    return net.predict(x).to_vector<double>();
  };
  const Tensor none = Tensor::empty({0, 6}, DType::f64);
  const Found whole = search_largest(f, 6, none, {.steps = 20});
  const std::int64_t all_calls = calls;
  calls = 0;
  stop = true;
  const Found stopped = search_largest(f, 6, none, {.steps = 20, .stop = &stop});
  CHECK(calls < all_calls / 4);
  CHECK(stopped.evaluations < whole.evaluations);
  CHECK(stopped.value <= whole.value);
  CHECK(stopped.value == f(Tensor::from(stopped.x, {1, 6}))[0]);
}

}  // namespace
}  // namespace keel
