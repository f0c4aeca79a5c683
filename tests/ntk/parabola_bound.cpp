// What a transformer's first block can give at most: never passed, and not far from what is found.
#include "../../ntk/parabola_bound.h"

#include <doctest/doctest.h>

#include "drawn_blocks.h"

using namespace keel;
using namespace keel::drawn;

// Behind one block, of which all is known: what the half planes' rims and all mixtures of them
// give.
TEST_CASE("parabola bound: no mixture of what paths can bring passes it, and some come close") {
  double closest = 0, sum = 0;
  constexpr int kNets = 12;
  for (std::uint64_t seed = 0; seed < kNets; ++seed) {
    FirstBlock first(seed, 10000);
    const BlockPaths paths(first.image, first.blocks[0], first.heads);
    const ParabolaBound bound(paths, first.blocks[0]);
    const Wanted wanted(first.blocks[0], first.draw.normals(kWidth));
    const double most = bound.most(wanted.d, wanted.of_units).bound(1e-12);
    const Judged judged(wanted, first.blocks[0], first.states);
    CAPTURE(seed);
    CHECK(judged.found <= most);
    closest = std::max(closest, judged.of(most));
    sum += judged.of(most);
  }
  CHECK(closest > 0.8);
  CHECK(sum / kNets > 0.5);
}
