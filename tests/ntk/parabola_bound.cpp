// What a transformer's first block can give at most: never passed, and not far from what is found.
#include "../../ntk/parabola_bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "../../core/random.h"

using namespace keel;

// Behind one block, of which all is known: what the half planes' rims and all mixtures of them
// give.
TEST_CASE("parabola bound: no mixture of what paths can bring passes it, and some come close") {
  double closest = 0, sum = 0;
  constexpr int kNets = 12;
  for (std::uint64_t seed = 0; seed < kNets; ++seed) {
    constexpr std::size_t kWidth = 4, kUnits = 6, kPlaces = 3;
    const std::size_t heads = 1 + seed % 2, paths = heads + 1;
    std::uint64_t stream = 0;
    const auto draw = [&](std::size_t n, double size = 1) {
      return normal({static_cast<std::int64_t>(n)}, {seed, stream++}, size, DType::f64)
          .to_vector<double>();
    };
    const EmbeddingImage image(draw(kWidth), draw(kWidth), draw(kPlaces * kWidth), draw(kWidth),
                               draw(kWidth));
    REQUIRE(image.in_planes());
    BlockMaps block{{draw(3 * kWidth * kWidth, 0.5), draw(3 * kWidth, 0.5)},
                    {draw(kWidth * kWidth, 0.5), draw(kWidth, 0.5)},
                    {draw(kUnits * kWidth, 0.5), draw(kUnits, 0.5)},
                    {draw(kWidth * kUnits), draw(kWidth)}};
    // What stands behind attention, of a vector for each path.
    const auto state = [&](const std::vector<std::vector<double>>& leaves) {
      std::vector<double> s = leaves[0];
      for (std::size_t i = 0; i < kWidth; ++i) s[i] += block.taken.bias[i];
      for (std::size_t c = 0; c < kWidth; ++c) {
        const std::vector<double>& mine = leaves[1 + c / (kWidth / heads)];
        double value = block.attended.bias[2 * kWidth + c];
        for (std::size_t i = 0; i < kWidth; ++i)
          value += block.attended.row(2 * kWidth + c)[i] * mine[i];
        for (std::size_t i = 0; i < kWidth; ++i) s[i] += block.taken.row(i)[c] * value;
      }
      return s;
    };
    const auto unit = [&](const std::vector<double>& s, std::size_t j) {
      double z = block.hidden.bias[j];
      for (std::size_t i = 0; i < kWidth; ++i) z += block.hidden.row(j)[i] * s[i];
      return z;
    };
    const auto leaf = [&](std::size_t place, double angle, double radius) {
      std::vector<double> h = image.shift();
      for (std::size_t i = 0; i < kWidth; ++i)
        h[i] += radius *
                (std::sin(angle) * image.along_x()[i] + std::cos(angle) * image.across(place)[i]);
      return h;
    };
    // At the rim for odd ones, within for the others, and mixed of two places for every third.
    std::vector<std::vector<double>> states;
    const std::vector<double> draws = draw(40000 * paths);
    const auto share = [](double drawn) { return 0.5 + 0.5 * std::erf(drawn / std::sqrt(2)); };
    for (std::size_t k = 0; k < 10000; ++k) {
      std::vector<std::vector<double>> leaves;
      for (std::size_t path = 0; path < paths; ++path) {
        const double* at = &draws[(k * paths + path) * 4];
        const auto place = static_cast<std::size_t>(share(at[0]) * 3);
        const double angle = std::numbers::pi * (share(at[1]) - 0.5);
        const double radius = k % 2 == 1 ? 1 : share(at[2]);
        leaves.push_back(leaf(place, angle, radius));
        if (path > 0 && k % 3 == 0) {
          const std::vector<double> other = leaf((place + 1) % kPlaces, -angle, 1);
          for (std::size_t i = 0; i < kWidth; ++i)
            leaves.back()[i] += share(at[3]) * (other[i] - leaves.back()[i]);
        }
      }
      states.push_back(state(leaves));
    }
    for (std::size_t j = 0; j < kUnits; ++j) {
      Interval interval{HUGE_VAL, -HUGE_VAL};
      for (const std::vector<double>& s : states) {
        interval.low = std::min(interval.low, unit(s, j));
        interval.high = std::max(interval.high, unit(s, j));
      }
      const double more = 0.3 * (interval.high - interval.low);
      block.units.push_back({interval.low - more, interval.high + more});
    }
    const ParabolaBound bound(image, block, heads);
    Direction d(kWidth), of_units(kUnits);
    const std::vector<double> w = draw(kWidth);
    for (std::size_t i = 0; i < kWidth; ++i) {
      d.w[i] = w[i];
      d.size[i] = std::abs(w[i]);
      of_units.add(w[i], std::abs(w[i]), block.back.row(i));
    }
    const double most = bound.most(d, of_units).bound(1e-12);
    double found = -HUGE_VAL, mean = 0;
    for (const std::vector<double>& s : states) {
      double value = 0;
      for (std::size_t i = 0; i < kWidth; ++i) value += w[i] * (s[i] + block.back.bias[i]);
      for (std::size_t j = 0; j < kUnits; ++j) value += of_units.w[j] * std::max(0.0, unit(s, j));
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
