// The GPU's body of factor_gram, run on the CPU: every block, its threads one after another between
// barriers.
#include "../../kernels/factor_gram_block.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "gram_terms.h"

using namespace gram_terms;

namespace {

/// x [n, cols] in panels, as factor_gram_panels.h describes them.
template <class T>
std::vector<Wide<T>> panels_of(const std::vector<Tensor>& pieces, int64_t& depth) {
  using Block = GramBlock<T>;
  const int64_t n = pieces[0].size(0), width = Block::kPanel, tile = width * Block::kRowPanels;
  int64_t cols = 0;
  for (const Tensor& piece : pieces) cols += piece.size(1);
  depth = (cols + Block::kChunk - 1) / Block::kChunk * Block::kChunk;
  const int64_t count = (n + tile - 1) / tile * Block::kRowPanels;
  std::vector<Wide<T>> panels(static_cast<std::size_t>(count * width * depth / Wide<T>::kCount));
  T* to = panels[0].v;
  int64_t first = 0;
  for (const Tensor& piece : pieces) {
    const auto values = piece.to_vector<T>();
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < piece.size(1); ++k)
        to[(i / width * depth + first + k) * width + i % width] = values[i * piece.size(1) + k];
    first += piece.size(1);
  }
  return panels;
}

/// What the GPU does: every block, its threads one after another between barriers.
template <class T>
void emulate(const std::vector<GramTerm>& terms, const GramTarget<T>& target) {
  using Block = GramBlock<T>;
  std::vector<std::vector<Wide<T>>> kept;
  std::vector<PackedTerm<T>> packed;
  int64_t steps = 0;
  for (const GramTerm& term : terms) {
    PackedTerm<T> p{};
    const auto pack = [&](const std::vector<Tensor>& pieces, int64_t& depth) {
      kept.push_back(panels_of<T>(pieces, depth));
      return kept.back()[0].v;
    };
    p.u_left = pack(term.left.u, p.u_depth);
    p.u_right = pack(term.right.u, p.u_depth);
    if (term.left.v.defined()) {
      p.v_left = pack({term.left.v}, p.v_depth);
      p.v_right = pack({term.right.v}, p.v_depth);
    }
    p.scale = static_cast<T>(term.scale);
    p.offset = static_cast<T>(term.offset);
    steps += (p.u_depth + p.v_depth) / Block::kChunk;
    packed.push_back(p);
  }
  std::vector<Wide<T>> shared(Block::kShared / Wide<T>::kCount);
  std::vector<typename Block::Thread> threads(Block::kThreads);
  for (int64_t b = 0; b < Block::blocks(target); ++b) {
    const auto place = Block::place(target, b);
    if (place.col * Block::kTileCols >= target.cols) continue;
    std::memset(static_cast<void*>(shared.data()), 0xff, shared.size() * sizeof(Wide<T>));  // NaN
    const Block block(packed.data(), static_cast<int>(steps), target, place);
    for (int id = 0; id < Block::kThreads; ++id) block.begin(threads[id], id, shared[0].v);
    for (int step = 0; step < steps; ++step)
      for (auto& thread : threads) block.step(thread, step, shared[0].v);
    for (const auto& thread : threads) block.end(thread);
  }
}

template <class T>
void check_emulated(int64_t n, int64_t m, bool lower) {
  CAPTURE(n);
  CAPTURE(m);
  CAPTURE(lower);
  const auto terms = terms_of(n, m, dtype_of<T>());
  const Tensor into = Tensor::full({n, m}, -3, dtype_of<T>());
  emulate<T>(terms, {into.data<T>(), n, m, m, 1, T(0.25), lower});
  CHECK(wrong(into, terms, 0.25, lower, -3, tolerance_of(dtype_of<T>())) == 0);
}

}  // namespace

TEST_CASE("factor_gram: the body of the GPU, run thread after thread, agrees with them too") {
  for (const int64_t n : {1, 33, 64, 127, 130, 300}) {
    check_emulated<float>(n, n, true);
    check_emulated<double>(n, n, true);
    for (const int64_t m : {1, 63, 66, 129}) {
      check_emulated<float>(n, m, false);
      check_emulated<double>(n, m, false);
    }
  }
}

TEST_CASE("factor_gram: blocks cover every tile once, and stay within a band") {
  using Block = GramBlock<float>;
  for (const bool lower : {true, false})
    for (const int64_t n : {1, 64, 65, 128, 129, 1000, 2049, 9000, 40132}) {
      CAPTURE(lower);
      CAPTURE(n);
      const int64_t m = lower ? n : 700;
      const GramTarget<float> target{nullptr, n, m, m, 1, 1, lower};
      const int64_t down = (n + Block::kTileRows - 1) / Block::kTileRows;
      const int64_t right = (m + Block::kTileCols - 1) / Block::kTileCols;
      const auto across = [&](int64_t row) {
        return lower ? Block::kRowPanels * (row + 1) : right;
      };
      std::vector<std::vector<bool>> seen;
      for (int64_t row = 0; row < down; ++row) seen.emplace_back(across(row), false);
      int64_t left = 0, twice = 0, outside = 0, backwards = 0, band = 0;
      for (int64_t b = 0; b < Block::blocks(target); ++b) {
        const auto [row, col] = Block::place(target, b);
        if (row < 0 || row >= down || col < 0 || col >= across(row)) {
          ++outside;
          continue;
        }
        twice += seen[row][col];
        seen[row][col] = true;
        backwards += row / Block::kBand < band;
        band = row / Block::kBand;
      }
      for (const auto& row : seen) left += std::count(row.begin(), row.end(), false);
      CHECK(outside == 0);
      CHECK(twice == 0);
      CHECK(left == 0);
      CHECK(backwards == 0);
    }
}

TEST_CASE("factor_gram block: entries may lie apart") {
  const int64_t n = 37, m = 50;
  const auto terms = terms_of(n, m, DType::f64);
  const Tensor into = Tensor::full({n, m, 3}, -3, DType::f64);
  emulate<double>(terms, {into.data<double>() + 1, n, m, m * 3, 3, 1, false});
  const Oracle oracle(terms);
  const auto got = into.to_vector<double>();
  int differ = 0;
  for (int64_t e = 0; e < n * m; ++e)
    differ += std::abs(got[3 * e + 1] - oracle.at(e / m, e % m)) > 1e-11 || got[3 * e] != -3 ||
              got[3 * e + 2] != -3;
  CHECK(differ == 0);
}

TEST_CASE("factor_gram block: no terms") {
  const Tensor into = Tensor::full({3, 50}, 7);
  emulate<float>({}, {into.data<float>(), 3, 50, 50, 1, 1, false});
  for (const double v : into.to_vector<double>()) CHECK(v == 0);
}
