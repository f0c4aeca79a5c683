// Branch and bound on a net's dual.
#include "../../ntk/branch.h"

#include <doctest/doctest.h>

#include "../../core/threads.h"
#include "../message_of.h"
#include "../sanitized.h"
#include "naive_tail.h"

namespace keel {
namespace {

double length(const Interval& of) { return of.high - of.low; }

Interval with_pieces(const Net& net, std::int64_t pieces) {
  return bound_net(net, {.pieces = pieces}).outputs[0];
}

TEST_CASE("branch: of one variable, pieces take most of a relu net's gap, and none of its values") {
  double gap = 0, left = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Net net = random_net("dense(2) layernorm relu dense(6) relu dense(1)", 1, seed);
    const Interval found = of_every_s(net), whole = with_pieces(net, 0),
                   cut = with_pieces(net, 200);
    CHECK(cut.low <= found.low);
    CHECK(cut.high >= found.high);
    CHECK(cut.low >= whole.low);
    CHECK(cut.high <= whole.high);
    gap += length(whole) - length(found);
    left += length(cut) - length(found);
  }
  CHECK(gap > 0);
  CHECK(left < 0.3 * gap);
}

TEST_CASE("branch: more pieces, a smaller interval around what is found") {
  for (const std::string phi : {"relu", "gelu", "silu"}) {
    if (test::kSanitized && phi != "relu") continue;
    CAPTURE(phi);
    const Net net =
        random_net(fmt::format("dense(32) layernorm {0} dense(16) {0} dense(1)", phi), 3, 12);
    const Interval none = with_pieces(net, 0), some = with_pieces(net, 16),
                   many = with_pieces(net, 120), found = found_ahead(net, 0);
    CHECK(many.low <= found.low);
    CHECK(many.high >= found.high);
    CHECK(length(some) < length(none));
    CHECK(length(many) < length(some));
    CHECK(length(many) - length(found) < 0.6 * (length(none) - length(found)));
  }
}

TEST_CASE("branch: the bits do not depend on the number of threads") {
  const Net net = random_net("dense(16) layernorm gelu dense(12) relu dense(1)", 3, 5);
  Interval one, three;
  {
    const ThreadLimit limit(1);
    one = with_pieces(net, 40);
  }
  {
    const ThreadLimit limit(3);
    three = with_pieces(net, 40);
  }
  CHECK(one.low == three.low);
  CHECK(one.high == three.high);
}

TEST_CASE("net_bound: nor do a dual's in ranges, which looks at a norm's ellipsoid") {
  const Net net = random_net("dense(128) layernorm relu dense(16) relu dense(1)", 6, 5);
  NetBoundOptions options{.steps = 40, .unit_steps = 20, .pieces = 0};
  for (int k = 0; k < 6; ++k) options.ranges.push_back({-1, 1.5});
  const auto with = [&](int threads) {
    const ThreadLimit limit(threads);
    return bound_net(net, options).outputs[0];
  };
  const Interval one = with(1), two = with(2);
  CHECK(one.low == two.low);
  CHECK(one.high == two.high);
}

TEST_CASE("branch: pieces are shared among outputs, and one layer behind the norm has none") {
  const Net two = random_net("dense(16) layernorm relu dense(12) relu dense(2)", 3, 6);
  const auto outputs = [](const Net& net, std::int64_t pieces) {
    return bound_net(net, {.pieces = pieces}).outputs;
  };
  const std::vector<Interval> none = outputs(two, 0), few = outputs(two, 7), some = outputs(two, 8);
  for (std::size_t i : {0, 1}) {
    CHECK(few[i].high == none[i].high);  // 7 / 4 is one, and a cut makes two
    CHECK(length(some[i]) <= length(none[i]));
  }
  CHECK(length(some[0]) + length(some[1]) < length(none[0]) + length(none[1]));
  const Net shallow = random_net("dense(16) layernorm relu dense(1)", 3, 6);
  CHECK(outputs(shallow, 500)[0].high == outputs(shallow, 0)[0].high);
  CHECK(message_of([&] { outputs(two, -1); }) ==
        "net_bound: got -1 pieces of 200 steps, wanted at least 0 of 1");
}

}  // namespace
}  // namespace keel
