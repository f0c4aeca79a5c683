// Small blocks of a transformer, drawn at random, and what they make of whatever paths may bring:
// what bounds of them are judged by.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "../../core/random.h"
#include "../../ntk/block_paths.h"

namespace keel::drawn {

using Vector = std::vector<double>;

inline constexpr std::size_t kWidth = 4, kUnits = 6, kPlaces = 3;

/// Numbers of a seed, each call's its own.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  Vector normals(std::size_t n, double size = 1) {
    return normal({static_cast<std::int64_t>(n)}, {seed_, stream_++}, size, DType::f64)
        .to_vector<double>();
  }
  Vector shares(std::size_t n) {
    return uniform({static_cast<std::int64_t>(n)}, {seed_, stream_++}, DType::f64)
        .to_vector<double>();
  }

 private:
  std::uint64_t seed_, stream_ = 0;
};

inline EmbeddingImage draw_image(Draws& draw) {
  const Vector weight = draw.normals(kWidth), bias = draw.normals(kWidth),
               places = draw.normals(kPlaces * kWidth), gain = draw.normals(kWidth);
  return {weight, bias, places, {gain, draw.normals(kWidth)}};
}

inline BlockMaps draw_block(Draws& draw) {
  const auto dense = [&](std::size_t outputs, std::size_t inputs, double size) {
    Vector weight = draw.normals(outputs * inputs, size);
    return DenseMap{std::move(weight), draw.normals(outputs, size)};
  };
  DenseMap attended = dense(3 * kWidth, kWidth, 0.5), taken = dense(kWidth, kWidth, 0.5);
  DenseMap hidden = dense(kUnits, kWidth, 0.5), back = dense(kWidth, kUnits, 1);
  return {std::move(attended), std::move(taken), std::move(hidden), std::move(back)};
}

/// What stands behind attention, of a vector for each path.
inline Vector behind_attention(const BlockMaps& block, std::size_t heads,
                               const std::vector<Vector>& leaves) {
  Vector s = leaves[0];
  for (std::size_t i = 0; i < kWidth; ++i) s[i] += block.taken.bias[i];
  for (std::size_t c = 0; c < kWidth; ++c) {
    const Vector& mine = leaves[1 + c / (kWidth / heads)];
    double value = block.attended.bias[2 * kWidth + c];
    for (std::size_t i = 0; i < kWidth; ++i)
      value += block.attended.row(2 * kWidth + c)[i] * mine[i];
    for (std::size_t i = 0; i < kWidth; ++i) s[i] += block.taken.row(i)[c] * value;
  }
  return s;
}

inline double unit_of(const BlockMaps& block, const Vector& s, std::size_t j) {
  double z = block.hidden.bias[j];
  for (std::size_t i = 0; i < kWidth; ++i) z += block.hidden.row(j)[i] * s[i];
  return z;
}

/// And behind the relus.
inline Vector behind_block(const BlockMaps& block, const Vector& s) {
  Vector t = s;
  for (std::size_t i = 0; i < kWidth; ++i) t[i] += block.back.bias[i];
  for (std::size_t j = 0; j < kUnits; ++j) {
    const double relu = std::max(0.0, unit_of(block, s, j));
    for (std::size_t i = 0; i < kWidth; ++i) t[i] += block.back.row(i)[j] * relu;
  }
  return t;
}

/// What a place's value, or a mean of two's, may be: at the rim where `rim`.
inline Vector draw_leaf(const EmbeddingImage& image, const double* shares, bool rim, bool mixed) {
  const auto leaf = [&](std::size_t place, double angle, double radius) {
    Vector h = image.shift();
    for (std::size_t i = 0; i < kWidth; ++i)
      h[i] += radius *
              (std::sin(angle) * image.along_x()[i] + std::cos(angle) * image.across(place)[i]);
    return h;
  };
  const auto place = static_cast<std::size_t>(shares[0] * kPlaces) % kPlaces;
  const double angle = std::numbers::pi * (shares[1] - 0.5);
  Vector h = leaf(place, angle, rim ? 1 : shares[2]);
  if (!mixed) return h;
  const Vector other = leaf((place + 1) % kPlaces, -angle, 1);
  for (std::size_t i = 0; i < kWidth; ++i) h[i] += shares[3] * (other[i] - h[i]);
  return h;
}

/// `n` states behind attention of a first block: at the rim every other one, every third of means.
inline std::vector<Vector> draw_states(const EmbeddingImage& image, const BlockMaps& block,
                                       std::size_t heads, std::size_t n, Draws& draw) {
  const Vector shares = draw.shares(4 * n * (heads + 1));
  std::vector<Vector> states;
  for (std::size_t k = 0; k < n; ++k) {
    std::vector<Vector> leaves;
    for (std::size_t path = 0; path <= heads; ++path)
      leaves.push_back(draw_leaf(image, &shares[(k * (heads + 1) + path) * 4], k % 2 == 1,
                                 path > 0 && k % 3 == 0));
    states.push_back(behind_attention(block, heads, leaves));
  }
  return states;
}

/// Intervals of the units that are wider than what `states` take.
inline void set_units(BlockMaps& block, const std::vector<Vector>& states) {
  for (std::size_t j = 0; j < kUnits; ++j) {
    Interval interval{HUGE_VAL, -HUGE_VAL};
    for (const Vector& s : states) {
      interval.low = std::min(interval.low, unit_of(block, s, j));
      interval.high = std::max(interval.high, unit_of(block, s, j));
    }
    const double more = 0.3 * (interval.high - interval.low);
    block.units.push_back({interval.low - more, interval.high + more});
  }
}

/// A first block of a seed, of one head or two, `n` states behind its attention, and the intervals
/// of its units.
struct FirstBlock {
  Draws draw;
  std::size_t heads;
  EmbeddingImage image;
  std::vector<BlockMaps> blocks;  // itself; a test may add a second
  std::vector<Vector> states;

  FirstBlock(std::uint64_t seed, std::size_t n)
      : draw(seed), heads(1 + seed % 2), image(draw_image(draw)), blocks{draw_block(draw)} {
    REQUIRE(image.in_planes());
    states = draw_states(image, blocks[0], heads, n, draw);
    set_units(blocks[0], states);
  }
};

/// w, and w pulled back to the units.
struct Wanted {
  Direction d{kWidth}, of_units{kUnits};
  Wanted(const BlockMaps& block, const Vector& w) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      d.w[i] = w[i];
      d.size[i] = std::abs(w[i]);
      of_units.add(w[i], std::abs(w[i]), block.back.row(i));
    }
  }
  double of(const Vector& t) const {
    double value = 0;
    for (std::size_t i = 0; i < kWidth; ++i) value += d.w[i] * t[i];
    return value;
  }
};

/// The largest and the mean of what is wanted, behind states of a block.
struct Judged {
  double found = -HUGE_VAL, mean = 0;
  Judged(const Wanted& wanted, const BlockMaps& block, const std::vector<Vector>& states) {
    for (const Vector& s : states) {
      const double value = wanted.of(behind_block(block, s));
      found = std::max(found, value);
      mean += value / static_cast<double>(states.size());
    }
  }
  /// How much of the bound, from the mean on, was found.
  double of(double most) const { return (found - mean) / (most - mean); }
};

}  // namespace keel::drawn
