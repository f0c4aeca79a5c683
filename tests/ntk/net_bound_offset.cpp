// Boxes of nets whose output is far from 0 beside all that it varies by.
#include <doctest/doctest.h>

#include "../../ntk/net_bound.h"

namespace keel {
namespace {

TEST_CASE("boxes: closed to a share of what f varies by, however far from 0 that is") {
  double width = 0;
  for (double offset : {0.0, 1e3, 1e5}) {
    CAPTURE(offset);
    Net net("dense(32) relu dense(32) relu dense(1)", 2, {.seed = 3, .dtype = DType::f64});
    const std::size_t bias = net.layout().entries().size() - 1;
    fill(net.layout().member_view(net.flat(), bias, 0), offset);
    const NetBound bound = bound_net(net, {.within = 1, .boxes = 100000});
    CHECK(bound.closed);
    const auto at = [&](std::size_t end) {
      const std::vector<double>& x = bound.found_at.at(end);
      return net.predict(Tensor::from(x, {1, 2})).item();
    };
    // Found, and proved: each end, and all nets alike.
    const double range = at(0) - at(1);
    CHECK(bound.outputs[0].high - at(0) <= 1.1 * kNearFound * range);
    CHECK(at(1) - bound.outputs[0].low <= 1.1 * kNearFound * range);
    const double proved = bound.outputs[0].high - bound.outputs[0].low;
    if (width > 0) CHECK(proved == doctest::Approx(width).epsilon(4e-3));
    width = proved;
  }
}

}  // namespace
}  // namespace keel
