// What a block with norms of its own adds, over all that its norms can give.
#include "../../ntk/normed_block.h"

#include "drawn_blocks.h"

using namespace keel;
using namespace keel::drawn;

namespace {

constexpr std::size_t kHeads = 2;

NormMap draw_norm(Draws& draw, bool centred) {
  Vector gain = draw.normals(kWidth);
  return {std::move(gain), centred ? draw.normals(kWidth) : Vector(kWidth), centred};
}

// gain u + shift, u somewhere on the sphere.
Vector draw_normed(Draws& draw, const NormMap& norm) {
  Vector u = draw.normals(kWidth);
  double mean = 0, squares = 0;
  if (norm.centred)
    for (double value : u) mean += value / kWidth;
  for (double& value : u) {
    value -= mean;
    squares += value * value;
  }
  for (std::size_t i = 0; i < kWidth; ++i)
    u[i] = norm.gain[i] * u[i] * std::sqrt(kWidth / squares) + norm.shift[i];
  return u;
}

struct FoundInBlock {
  double low = 1e300, high = -1e300;
  void look(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

}  // namespace

TEST_CASE("normed block: within its range, which is nearly reached") {
  for (const bool centred : {true, false})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Draws draw(seed);
      TransformerParts::Block block;
      block.maps = draw_block(draw);
      block.attention_norm = draw_norm(draw, centred);
      block.hidden_norm = draw_norm(draw, centred);
      Direction d(kWidth);
      d.add(1, 1, draw.normals(kWidth).data());
      const auto along_d = [&](const Vector& v) {
        double sum = 0;
        for (std::size_t i = 0; i < kWidth; ++i) sum += d.w[i] * v[i];
        return sum;
      };
      // Each part's by itself: no part's place says anything of another's.
      const Vector none(kWidth);
      const double base = along_d(behind_attention(block.maps, kHeads, {none, none, none}));
      FoundInBlock heads[kHeads], units;
      for (int k = 0; k < 20000; ++k) {
        const Vector seen = draw_normed(draw, *block.attention_norm);
        heads[0].look(along_d(behind_attention(block.maps, kHeads, {none, seen, none})) - base);
        heads[1].look(along_d(behind_attention(block.maps, kHeads, {none, none, seen})) - base);
        const Vector other = draw_normed(draw, *block.hidden_norm);
        units.look(along_d(behind_block(block.maps, other)) - along_d(other));
      }
      const double low = base + heads[0].low + heads[1].low + units.low,
                   high = base + heads[0].high + heads[1].high + units.high;
      const Range range = range_added(block, kHeads, d);
      CAPTURE(seed);
      CHECK(low >= range.within.low);
      CHECK(high <= range.within.high);
      CHECK(high - low > 0.93 * (range.within.high - range.within.low));
      CHECK(range.size >= std::max(std::abs(low), std::abs(high)));
    }
}
