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
    const std::size_t heads = 1 + seed % 2;
    Draws draw(seed);
    const EmbeddingImage image = draw_image(draw);
    REQUIRE(image.in_planes());
    BlockMaps block = draw_block(draw);
    const std::vector<Vector> states = draw_states(image, block, heads, 10000, draw);
    set_units(block, states);
    const BlockPaths paths(image, block, heads);
    const ParabolaBound bound(paths, block);
    const Wanted wanted(block, draw.normals(kWidth));
    const double most = bound.most(wanted.d, wanted.of_units).bound(1e-12);
    double found = -HUGE_VAL, mean = 0;
    for (const Vector& s : states) {
      const double value = wanted.of(behind_block(block, s));
      found = std::max(found, value);
      mean += value / static_cast<double>(states.size());
    }
    CAPTURE(seed);
    CHECK(found <= most);
    closest = std::max(closest, (found - mean) / (most - mean));
    sum += (found - mean) / (most - mean);
  }
  CHECK(closest > 0.8);
  CHECK(sum / kNets > 0.5);
}
