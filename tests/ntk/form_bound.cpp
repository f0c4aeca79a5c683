// What two blocks of a transformer, or one, can give at most, all relus at once.
#include "../../ntk/form_bound.h"

#include <doctest/doctest.h>

#include "../../ntk/form_dual.h"
#include "../../ntk/parabola_bound.h"
#include "drawn_blocks.h"

using namespace keel;
using namespace keel::drawn;

namespace {

// What a head takes in of states behind a block: one, or a mean of two.
std::vector<Vector> mixed(const std::vector<Vector>& states, std::size_t n, Draws& draw) {
  const Vector shares = draw.shares(3 * n);
  std::vector<Vector> result;
  const auto one = [&](double share) {
    const auto count = static_cast<double>(states.size());
    return states[static_cast<std::size_t>(share * count) % states.size()];
  };
  for (std::size_t k = 0; k < n; ++k) {
    Vector t = one(shares[3 * k]);
    const Vector other = one(shares[3 * k + 1]);
    if (k % 3 == 0)
      for (std::size_t i = 0; i < kWidth; ++i) t[i] += shares[3 * k + 2] * (other[i] - t[i]);
    result.push_back(std::move(t));
  }
  return result;
}

}  // namespace

TEST_CASE("form bound: behind one block nothing passes it, and it is closer than parabolas") {
  double sum = 0;
  int closer = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    FirstBlock first(seed, 10000);
    const BlockPaths paths(first.image, first.blocks[0], first.heads);
    const Wanted wanted(first.blocks[0], first.draw.normals(kWidth));
    const Judged judged(wanted, first.blocks[0], first.states);
    const FormBound bound(paths, first.blocks, first.heads);
    double most = 0;
    CAPTURE(seed);
    for (const int steps : {1, 7, 100}) {
      most = bound.most(wanted.d, wanted.of_units, steps).bound(1e-12);
      CHECK(judged.found <= most);
    }
    if (most == HUGE_VAL) continue;  // no relu has a parabola
    ++all;
    sum += judged.of(most);
    const ParabolaBound parabolas(paths, first.blocks[0]);
    closer += most < parabolas.most(wanted.d, wanted.of_units).bound(1e-12);
  }
  CHECK(all >= 10);
  CHECK(closer >= all - 1);
  CHECK(sum / all > 0.8);
}

TEST_CASE("form bound: behind two blocks nothing passes it, and descent makes it tight") {
  double first = 0, last = 0;
  constexpr int kNets = 12;
  for (std::uint64_t seed = 0; seed < kNets; ++seed) {
    const std::size_t heads = 1 + seed % 2;
    Draws draw(seed);
    const EmbeddingImage image = draw_image(draw);
    std::vector<BlockMaps> blocks{draw_block(draw), draw_block(draw)};
    if (seed % 3 == 0) {  // units that are always on, and always off
      blocks[0].hidden.bias[0] += 30;
      blocks[0].hidden.bias[1] -= 30;
      blocks[1].hidden.bias[2] += 300;
      blocks[1].hidden.bias[3] -= 300;
    }
    const std::vector<Vector> states = draw_states(image, blocks[0], heads, 5000, draw);
    set_units(blocks[0], states);
    if (seed % 3 == 0) {
      REQUIRE(blocks[0].units[0].low > 0);
      REQUIRE(blocks[0].units[1].high < 0);
    }
    std::vector<Vector> behind, last_states;
    for (const Vector& s : states) behind.push_back(behind_block(blocks[0], s));
    constexpr std::size_t kTried = 20000;
    std::vector<std::vector<Vector>> brought;  // what each path of the second block takes
    for (std::size_t path = 0; path <= heads; ++path)
      brought.push_back(mixed(behind, kTried, draw));
    for (std::size_t k = 0; k < kTried; ++k) {
      std::vector<Vector> leaves;
      for (const auto& of_path : brought) leaves.push_back(of_path[k]);
      last_states.push_back(behind_attention(blocks[1], heads, leaves));
    }
    set_units(blocks[1], last_states);
    const BlockPaths paths(image, blocks[0], heads);
    const FormBound bound(paths, blocks, heads);
    const Wanted wanted(blocks[1], draw.normals(kWidth));
    const Judged judged(wanted, blocks[1], last_states);
    CAPTURE(seed);
    for (const int steps : {1, 10, 100, 200}) {
      const double most = bound.most(wanted.d, wanted.of_units, steps).bound(1e-12);
      CHECK(judged.found <= most);
      if (steps == 1) first += judged.of(most) / kNets;
      if (steps == 200) last += judged.of(most) / kNets;
    }
  }
  CAPTURE(first);
  CHECK(last > 1.5 * first);
  CHECK(last > 0.3);
}

// A bound that is loose would hide a mistake in it; its slope, which is made of where it is taken,
// would not agree with it.
TEST_CASE("form dual: its slope is that of finite differences") {
  int nets = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    auto [draw, heads, image, blocks, states] = FirstBlock(seed, 2000);
    if (seed < 4) {
      for (Vector& s : states) s = behind_block(blocks[0], s);
      blocks.push_back(draw_block(draw));
      set_units(blocks[1], states);
    }
    const BlockPaths paths(image, blocks[0], heads);
    const FormRows rows(paths, blocks, heads);
    const Wanted wanted(blocks.back(), draw.normals(kWidth));
    FormDual dual(rows, wanted.d, wanted.of_units);
    if (!dual.any_parabola()) continue;
    ++nets;
    for (int step = 0; step < 7; ++step) {
      dual.value();
      dual.step(0.1);
    }
    dual.value();
    const Vector slope = dual.slope();
    double squares = 0, off = 0;
    for (std::size_t i = 0; i < slope.size(); ++i) {
      constexpr double kStep = 1e-5;
      double& x = dual.multipliers()[i];
      const double before = x;
      x = before + kStep;
      const double above = dual.value().value;
      x = before - kStep;
      const double difference = (above - dual.value().value) / (2 * kStep);
      x = before;
      squares += slope[i] * slope[i];
      off += (slope[i] - difference) * (slope[i] - difference);
    }
    CAPTURE(seed);
    CHECK(squares > 0.01);
    CHECK(std::sqrt(off / squares) < 2e-3);
  }
  CHECK(nets >= 4);
}

TEST_CASE("form bound: what it leaves to lines") {
  Draws draw(1);
  const EmbeddingImage image = draw_image(draw);
  std::vector<BlockMaps> blocks{draw_block(draw)};
  const BlockPaths paths(image, blocks[0], 2);
  set_units(blocks[0], draw_states(image, blocks[0], 2, 100, draw));
  const auto most = [&](const Wanted& wanted) {
    return FormBound(paths, blocks, 2).most(wanted.d, wanted.of_units, 5);
  };
  const Wanted any(blocks[0], {1, -2, 3, 0.5});
  CHECK(std::isfinite(most(any).value));
  CHECK(most(any).size > 0);
  // Every relu has a negative factor: a line each is all there is.
  Wanted below = any;
  for (double& w : below.of_units.w) w = -std::abs(w);
  CHECK(most(below).value == HUGE_VAL);
  // What leaves double.
  Wanted large = any;
  for (double& w : large.of_units.w) w = 1e308 * w;
  CHECK(most(large).value == HUGE_VAL);
  large.of_units.w[0] = std::nan("");
  CHECK(most(large).value == HUGE_VAL);
  // As many places as rows allow: 5 x 5 paths of 120 rows each.
  const Vector many = draw.normals(119 * kWidth), more = draw.normals(120 * kWidth);
  const auto fits = [&](const Vector& places, std::size_t of_blocks) {
    const EmbeddingImage at({1, 2, 3, 5}, {1, 0, 0, 0}, places, {{1, 1, 1, 1}, {0, 0, 0, 0}});
    return FormRows::fits(BlockPaths(at, blocks[0], 4), of_blocks);
  };
  CHECK(fits(many, 2));
  CHECK_FALSE(fits(more, 2));
  CHECK(fits(more, 1));
}
