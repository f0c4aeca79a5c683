// factor_gram by 3xTF32: where it is chosen, how its panels lie, and, emulated, how accurate it is.
// On a GPU the same bounds hold whichever product was chosen.
#include "../../kernels/factor_gram_tensor.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <tuple>

#include "../gpu.h"
#include "gram_terms.h"

using namespace gram_terms;

namespace {

Tensor mapped(const Tensor& x, const std::function<float(float)>& f) {
  auto values = x.to_vector<float>();
  for (float& v : values) v = f(v);
  return Tensor::from(values, x.shape());
}

GramSide mapped(const GramSide& side, const std::function<float(float)>& f) {
  GramSide result;
  for (const Tensor& piece : side.u) result.u.push_back(mapped(piece, f));
  if (side.v.defined()) result.v = mapped(side.v, f);
  return result;
}

using Terms = std::vector<GramTerm>;

Terms mapped(Terms terms, const std::function<float(float)>& left,
             const std::function<float(float)>& right) {
  for (GramTerm& term : terms) {
    term.left = mapped(term.left, left);
    term.right = mapped(term.right, right);
  }
  return terms;
}

/// u of two pieces and v, together `depth` columns each: odd, and more than a chunk.
Terms deep_terms(int64_t n, int64_t m, int64_t depth) {
  const auto side = [&](int64_t rows, std::uint64_t stream) {
    return GramSide{{draw({rows, depth / 3}, stream, DType::f32),
                     draw({rows, depth - depth / 3}, stream + 1, DType::f32)},
                    draw({rows, depth}, stream + 2, DType::f32)};
  };
  return {{side(n, 1), side(m, 11), 0.5, 0.25}, {side(n, 21), side(m, 31), 2, 0}};
}

Tensor gram(const Terms& terms, int64_t n, int64_t m, bool lower, Device device) {
  GramMatrix matrix = GramMatrix::over(Tensor::full({n, m}, 0, DType::f32, device));
  for (const GramTerm& term : terms) {
    const auto there = [&](const GramSide& side) {
      GramSide moved;
      for (const Tensor& piece : side.u) moved.u.push_back(piece.to(device));
      if (side.v.defined()) moved.v = side.v.to(device);
      return moved;
    };
    matrix.terms.push_back({there(term.left), there(term.right), term.scale, term.offset});
  }
  matrix.lower = lower;
  factor_gram({&matrix, 1});
  return matrix.into;
}

/// The largest error of any entry over 2^-23 times the sum of the sizes of what it adds; `exact`
/// are the terms that `terms` stand for.
double worst_error(const Terms& terms, const Terms& exact, bool lower, Device device = {}) {
  const int64_t n = exact[0].left.u[0].size(0), m = exact[0].right.u[0].size(0);
  const auto size_of = [](float x) { return std::abs(x); };
  Terms sizes = mapped(exact, size_of, size_of);
  for (GramTerm& term : sizes) {
    term.scale = std::abs(term.scale);
    term.offset = std::abs(term.offset);
  }
  const Oracle wanted(exact), size(sizes);
  const auto got = gram(terms, n, m, lower, device).to_vector<float>();
  double worst = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < (lower ? i + 1 : m); ++j) {
      const double error = std::abs(got[i * m + j] - wanted.at(i, j));
      if (std::isnan(error)) return error;  // no bound holds
      worst = max_or_nan(worst, error / size.at(i, j) / std::numeric_limits<float>::epsilon());
    }
  return worst;
}

double worst_error(const Terms& terms, bool lower = false, Device device = {}) {
  return worst_error(terms, terms, lower, device);
}

float same(float x) { return x; }
float positive(float x) { return std::abs(x); }
float to_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000) & 0xffffe000);
}

// In units of worst_error. Multiply-adds round once a column; 3xTF32 twice in eight, but cuts its
// factors to 22 bits.
constexpr double kFmaBound = 16, kTensorBound = 6;
// What one side in TF32 alone makes of sums of both signs, which forgive the most.
constexpr double kTf32 = 60;

}  // namespace

TEST_CASE("factor_gram: tensor cores where TF32 outruns float32 by far, multiply-adds elsewhere") {
  for (const auto& [major, minor] : std::vector<std::pair<int, int>>{{8, 0}, {9, 0}})
    CHECK(gram_product(major, minor) == GramProduct::tensor);
  for (const auto& [major, minor] : std::vector<std::pair<int, int>>{
           {7, 0}, {7, 5}, {8, 6}, {8, 7}, {8, 9}, {10, 0}, {12, 0}, {12, 1}})
    CHECK(gram_product(major, minor) == GramProduct::fma);
}

TEST_CASE("factor_gram: a tensor panel's chunk has a place for every element, a tile a thread") {
  using Product = TensorProduct;
  using Tile = Product::Tile;
  std::set<int> places;
  for (int row = 0; row < Tile::kPanel; ++row)
    for (int k = 0; k < Tile::kChunk; ++k) places.insert(Product::at(row, k));
  CHECK(static_cast<int>(places.size()) == Tile::kPanel * Tile::kChunk);
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == Tile::kPanel * Tile::kChunk - 1);
  std::set<int> entries;
  int apart = 0;
  for (int id = 0; id < Product::kThreads; ++id)
    for (int r = 0; r < Product::kRows; ++r)
      for (int c = 0; c < Product::kCols; ++c) {
        const int row = Product::row_of(id, r), col = Product::col_of(id, c);
        if (row >= 0 && row < Tile::kTileRows && col >= 0 && col < Tile::kTileCols)
          entries.insert(row * Tile::kTileCols + col);
        apart += col != Product::col_of(id, c / 4 * 4) + c % 4;  // stores of sixteen bytes
      }
  CHECK(static_cast<int>(entries.size()) == Tile::kTileRows * Tile::kTileCols);
  CHECK(apart == 0);
}

TEST_CASE("factor_gram: what a tensor panel keeps of an element") {
  using Product = TensorProduct;
  constexpr float kMost = 0x1.ffdffep127f, kInfinity = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(to_tf32(std::nextafter(kMost, kInfinity))));  // what it is there for
  CHECK(std::isfinite(to_tf32(kMost)));
  for (const float x : {0.0f, 1.0f, 1e-45f, 3e38f, kMost, kInfinity}) {
    CHECK(Product::packed(x) == x);
    CHECK(Product::packed(-x) == -x);
  }
  CHECK(Product::packed(std::nextafter(kMost, kInfinity)) == kMost);
  CHECK(Product::packed(std::numeric_limits<float>::lowest()) == -kMost);
  CHECK(std::isnan(Product::packed(std::nanf(""))));
}

TEST_CASE("factor_gram: as accurate by 3xTF32 as by multiply-adds") {
  for (const int gpu : kGpus) {
    CAPTURE(gpu);
    const EmulatedGpu on(gpu);
    const double bound = gpu == 90 ? kTensorBound : kFmaBound;
    for (const int64_t n : {1, 33, 130}) {
      CHECK(worst_error(terms_of(n, n, DType::f32), true) <= bound);
      CHECK(worst_error(terms_of(n, n + 7, DType::f32)) <= bound);
    }
    // Of positive sums a tensor core's own accumulator would lose the more the deeper they are.
    for (const int64_t depth : {3, 17, 129, 403}) {
      CAPTURE(depth);
      const Terms terms = deep_terms(70, 65, depth);
      CHECK(worst_error(terms) <= bound);
      CHECK(worst_error(mapped(terms, positive, positive)) <= bound);
    }
    const auto times = [](float scale) { return [scale](float x) { return scale * x; }; };
    Terms large = {{{{draw({40, 21}, 1, DType::f32)}, {}}, {{draw({9, 21}, 2, DType::f32)}, {}}}};
    CHECK(worst_error(mapped(large, times(1e30f), same)) <= bound);
    CHECK(worst_error(mapped(large, times(1e30f), times(1e-30f))) <= bound);
  }
}

TEST_CASE("factor_gram: float32 on a GPU is float32, and TF32 on either side would show") {
  const bool emulated = std::end(kGpus)[-1] == 90;
  if (!emulated && !test::gpu_here("factor_gram: float32 on a GPU is float32")) return;
  const EmulatedGpu on(90);
  const Device device = emulated ? Device() : Device::cuda();
  for (const int64_t depth : {17, 129}) {
    CAPTURE(depth);
    const Terms terms = deep_terms(40, 30, depth), up = mapped(terms, positive, positive);
    for (const Terms& exact : {terms, up}) {
      CHECK(worst_error(exact, false, device) <= kFmaBound);
      CHECK(worst_error(mapped(exact, to_tf32, same), exact, false, device) > kTf32);
      CHECK(worst_error(mapped(exact, same, to_tf32), exact, false, device) > kTf32);
    }
    const Tensor once = gram(terms, 40, 30, false, device);
    CHECK(once.to_vector<float>() == gram(terms, 40, 30, false, device).to_vector<float>());
  }
}

TEST_CASE("factor_gram: what is not finite stays so, and spoils its own entries alone") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int gpu : kGpus) {
    CAPTURE(gpu);
    const EmulatedGpu on(gpu);
    const float last_nan = std::bit_cast<float>(0x7fffffffu);  // whose bits a carry would leave
    for (const float value : {infinity, -infinity, std::nanf(""), last_nan, -last_nan}) {
      auto u = draw({20, 11}, 1, DType::f32).to_vector<float>();
      u[5 * 11 + 3] = value;
      const GramSide side{{Tensor::from(u, {20, 11})}, {}};
      const auto got = gram({{side, side}}, 20, 20, false, {}).to_vector<float>();
      int wrong = 0;
      for (int i = 0; i < 20; ++i)
        for (int j = 0; j < 20; ++j) wrong += std::isfinite(got[i * 20 + j]) == (i == 5 || j == 5);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("factor_gram: the largest and the smallest numbers") {
  const float most = std::numeric_limits<float>::max();
  for (const int gpu : kGpus) {
    CAPTURE(gpu);
    const EmulatedGpu on(gpu);
    // {a factor, the other, by how much their product may be off}
    for (const auto& [a, b, off] :
         std::vector<std::tuple<float, float, double>>{{most, 1e-9f, 0x1p-11 * most * 1e-9},
                                                       {-most, 0.5f, 0x1p-11 * most},
                                                       {1e-38f, 1e30f, 2 * 0x1p-136 * 1e30},
                                                       {-3e-41f, 1e30f, 2 * 0x1p-136 * 1e30}}) {
      const GramSide left{{Tensor::full({3, 9}, a)}, {}}, right{{Tensor::full({2, 9}, b)}, {}};
      const double wanted = 9.0 * a * b;
      const bool fits = std::abs(wanted) < most;
      for (const float got : gram({{left, right}}, 3, 2, false, {}).to_vector<float>())
        CHECK((fits ? std::abs(got - wanted) <= 9 * off : !std::isfinite(got)));
    }
  }
}
