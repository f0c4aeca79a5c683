// The GPU's body of factor_gram: what one thread of a block does between two barriers. It is plain
// code of (thread, shared memory, the thread's registers), so that a test runs a block on the CPU,
// thread after thread.
#pragma once

#include <cmath>
#include <cstdint>

#include "factor_gram_panels.h"
#include "wide.h"

namespace keel {

/// A block's tile of entries [kTileRows, kTileCols]. Both sides come in panels of kPanel rows whose
/// depths are padded to whole chunks; the left side has whole tiles of panels.
template <class T>
struct GramTile {
  static constexpr int kPanel = 64;
  static constexpr int kRowPanels = sizeof(T) == 4 ? 2 : 1;
  static constexpr int kTileRows = kRowPanels * kPanel, kTileCols = kPanel;
  static constexpr int kChunk = 8;  // columns of factors between two barriers
  static constexpr int kSlot = (kRowPanels + 1) * kChunk * kPanel;  // elements of a stage
};

/// A warp as 4 x 8 threads. Neighbours (lane, lane ^ 1) read one right operand, which may spare a
/// pass over the banks of shared memory.
struct WarpLayout {
  KEEL_HD static int down(int id) { return (id & 1) | (id >> 3 & 2); }
  KEEL_HD static int across(int id) { return id >> 1 & 7; }
};

/// How a block multiplies a chunk of both sides: each thread its own entries, by multiply-adds.
/// kernels/factor_gram_tensor.h has another.
template <class T>
struct FmaProduct {
  using Tile = GramTile<T>;
  static constexpr int kThreads = 256;
  static constexpr int kStages = 2;  // one is filled while the other is multiplied
  static constexpr int kRows = sizeof(T) == 4 ? 8 : 4, kCols = 4;  // entries of a thread

  /// Row and column of the tile that entry (r, c) of a thread is.
  KEEL_HD static int row_of(int id, int r) {
    const int warp = id / 32, down = WarpLayout::down(id);
    return warp / kWarpsAcross * kWarpRows + r / kWide * 4 * kWide + down * kWide + r % kWide;
  }
  KEEL_HD static int col_of(int id, int c) {
    const int warp = id / 32, across = WarpLayout::across(id);
    return warp % kWarpsAcross * kWarpCols + c / kWide * 8 * kWide + across * kWide + c % kWide;
  }

  /// Adds the products of the chunk in `slot` to the thread's sums.
  KEEL_HD static void multiply(int id, const T* slot, T (&sum)[kRows][kCols]) {
    const int row = row_of(id, 0);
    const T* left = slot + row / Tile::kPanel * Tile::kChunk * Tile::kPanel + row % Tile::kPanel;
    const T* right = slot + Tile::kRowPanels * Tile::kChunk * Tile::kPanel + col_of(id, 0);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int k = 0; k < Tile::kChunk; ++k) {
      Wide<T> a[kRows / kWide], b[kCols / kWide];
      for (int run = 0; run < kRows / kWide; ++run)
        a[run] = *reinterpret_cast<const Wide<T>*>(left + k * Tile::kPanel + run * 4 * kWide);
      for (int run = 0; run < kCols / kWide; ++run)
        b[run] = *reinterpret_cast<const Wide<T>*>(right + k * Tile::kPanel + run * 8 * kWide);
      for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < kCols; ++c)
          sum[r][c] += a[r / kWide].v[r % kWide] * b[c / kWide].v[c % kWide];
    }
  }

 private:
  static constexpr int kWide = Wide<T>::kCount;
  // A warp is 4 x 8 threads. A thread's rows, and columns, are runs of sixteen bytes beside those
  // of its neighbours, so that a warp reads shared memory without conflicts.
  static constexpr int kWarpRows = 4 * kRows, kWarpCols = 8 * kCols;
  static constexpr int kWarpsAcross = Tile::kTileCols / kWarpCols;
  static_assert(kThreads / 32 == Tile::kTileRows / kWarpRows * kWarpsAcross);
  static_assert(Tile::kPanel % kWarpRows == 0 && Tile::kPanel % kWarpCols == 0);
};

/// A block of Product::kThreads threads: one tile of entries.
template <class T, class Product = FmaProduct<T>>
class GramBlock {
  static constexpr int kWide = Wide<T>::kCount;

 public:
  using Tile = GramTile<T>;
  static constexpr int kThreads = Product::kThreads, kStages = Product::kStages;
  static constexpr int kPanel = Tile::kPanel, kRowPanels = Tile::kRowPanels;
  static constexpr int kChunk = Tile::kChunk, kSlot = Tile::kSlot;
  static constexpr int kTileRows = Tile::kTileRows, kTileCols = Tile::kTileCols;
  static constexpr int kRows = Product::kRows, kCols = Product::kCols;
  static constexpr int kPart = kChunk * kPanel / kWide;    // wide words of a panel's chunk,
  static constexpr int kWords = (kRowPanels + 1) * kPart;  // of all panels',
  static constexpr int kCopies = (kWords + kThreads - 1) / kThreads;  // and of a thread, at most
  // Behind the stages each thread's first products wait for the second: registers are short.
  static constexpr int kShared = kStages * kSlot + kTileRows * kTileCols;

  // Rows of tiles that blocks walk along together, down each column of tiles: what they read at a
  // time, panels of both sides, stays in the GPU's L2. One row after another would read all panels
  // of the right again for each, which are more than it holds.
  static constexpr int kBand = 16;

  /// Which tile a block computes, band by band; in a triangle none above the diagonal.
  struct Place {
    int64_t row, col;
  };
  KEEL_HD static int64_t blocks(const GramTarget<T>& target) {
    const int64_t rows = tiles(target.rows, kTileRows);
    return target.lower ? before(rows) : rows * tiles(target.cols, kTileCols);
  }
  KEEL_HD static Place place(const GramTarget<T>& target, int64_t block) {
    const int64_t rows = tiles(target.rows, kTileRows);
    if (!target.lower) {
      const int64_t cols = tiles(target.cols, kTileCols);
      const int64_t first = block / (kBand * cols) * kBand;
      return down_columns(block - first * cols, first, smaller(kBand, rows - first));
    }
    // A band is a rectangle, and the triangle right of it, which has one row less.
    const int64_t first = row_of(block) / kBand * kBand, height = smaller(kBand, rows - first);
    const int64_t at = block - before(first), whole = kRowPanels * (first + 1);
    if (at < whole * height) return down_columns(at, first, height);
    const int64_t beyond = at - whole * height, row = row_of(beyond);
    return {first + 1 + row, whole + beyond - before(row)};
  }

  /// `steps`: chunks of all terms' products, one after another.
  KEEL_HD GramBlock(const PackedTerm<T>* terms, int steps, const GramTarget<T>& target, Place place)
      : terms_(terms), steps_(steps), target_(target), place_(place) {}

  /// What a thread keeps from barrier to barrier.
  struct Thread {
    int id;
    // The product being copied, u or v of a term, and where the thread's part of its next chunk is.
    const PackedTerm<T>* load;
    bool load_v;
    int to_load;  // chunks of this product
    const T* from[kCopies];
    // The product being summed.
    const PackedTerm<T>* term;
    bool term_v;
    int to_multiply;  // chunks of it
    T theta[kRows][kCols], sum[kRows][kCols];
  };

  /// Before the first barrier.
  KEEL_HD void begin(Thread& t, int id, T* shared) const {
    t.id = id;
    t.load = t.term = terms_;
    t.load_v = t.term_v = false;
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCols; ++c) t.theta[r][c] = t.sum[r][c] = 0;
    if (steps_ == 0) return;
    t.to_multiply = chunks(*t.term, false);
    aim(t);
    for (int stage = 0; stage < kStages - 1; ++stage) copy(t, stage, shared);
  }

  /// Between the barrier number `at` and the next: chunk `at` has arrived, and the slot of the
  /// chunk before it is free.
  KEEL_HD void step(Thread& t, int at, T* shared) const {
    copy(t, at + kStages - 1, shared);
    Product::multiply(t.id, shared + at % kStages * kSlot, t.sum);
    if (--t.to_multiply > 0) return;
    finish_product(t, shared + kStages * kSlot + t.id);
    if (at + 1 < steps_) t.to_multiply = chunks(*t.term, t.term_v);
  }

  /// After the last step.
  KEEL_HD void end(const Thread& t) const {
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = place_.row * kTileRows + Product::row_of(t.id, r);
      if (i >= target_.rows) continue;
      const int64_t cols = target_.lower ? smaller(i + 1, target_.cols) : target_.cols;
      for (int c = 0; c < kCols; c += kWide) {
        const int64_t j = place_.col * kTileCols + Product::col_of(t.id, c);
        store_run(t.theta[r] + c, i, j, cols - j);
      }
    }
  }

 private:
  KEEL_HD static int64_t tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }
  /// Tiles of a triangle before this row, and the row that tile `block` is in.
  KEEL_HD static int64_t before(int64_t row) { return kRowPanels * row * (row + 1) / 2; }
  KEEL_HD static int64_t row_of(int64_t block) {
    auto row =
        static_cast<int64_t>((std::sqrt(1 + 8 * static_cast<float>(block) / kRowPanels) - 1) / 2);
    while (before(row) > block) --row;  // the root is rounded: doubles are slow on many a GPU
    while (before(row + 1) <= block) ++row;
    return row;
  }
  KEEL_HD static Place down_columns(int64_t at, int64_t first, int64_t height) {
    return {first + at % height, at / height};
  }
  KEEL_HD static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  KEEL_HD static int chunks(const PackedTerm<T>& term, bool v) {
    return static_cast<int>((v ? term.v_depth : term.u_depth) / kChunk);
  }

  /// Points a thread to the first chunk of the product it copies next.
  KEEL_HD void aim(Thread& t) const {
    const PackedTerm<T>& term = *t.load;
    t.to_load = chunks(term, t.load_v);
    const int64_t panel = int64_t{t.to_load} * kChunk * kPanel;
    const T* left = (t.load_v ? term.v_left : term.u_left) + place_.row * kRowPanels * panel;
    const T* right = (t.load_v ? term.v_right : term.u_right) + place_.col * panel;
    for (int pass = 0; pass < kCopies; ++pass) {
      const int word = t.id + pass * kThreads, part = word / kPart;
      t.from[pass] = (part < kRowPanels ? left + part * panel : right) + word % kPart * kWide;
    }
  }

  /// Copies chunk `at` of all into its slot, if there is one. Chunks are copied in turn.
  KEEL_HD void copy(Thread& t, int at, T* shared) const {
    if (at < steps_) {
      T* slot = shared + at % kStages * kSlot + t.id * kWide;
      for (int pass = 0; pass < kCopies; ++pass) {
        if (t.id + pass * kThreads < kWords)
          copy_async(slot + pass * kThreads * kWide, t.from[pass]);
        t.from[pass] += kChunk * kPanel;
      }
      if (--t.to_load == 0 && at + 1 < steps_) {
        next(t.load, t.load_v);
        aim(t);
      }
    }
    commit_copies();
  }

  KEEL_HD static void next(const PackedTerm<T>*& term, bool& v) {
    v = !v && term->v_left;
    if (!v) ++term;
  }

  KEEL_HD static void finish_product(Thread& t, T* first) {
    const T scale = t.term->scale, offset = t.term->offset;
    // Three loops, or nvcc asks which for every entry.
    if (t.term_v)
      each_entry([&](int r, int c) {
        t.theta[r][c] += first[(r * kCols + c) * kThreads] * (scale * t.sum[r][c] + offset);
      });
    else if (t.term->v_left)
      each_entry([&](int r, int c) { first[(r * kCols + c) * kThreads] = t.sum[r][c]; });
    else
      each_entry([&](int r, int c) { t.theta[r][c] += scale * t.sum[r][c]; });
    each_entry([&](int r, int c) { t.sum[r][c] = 0; });
    next(t.term, t.term_v);
  }

  template <class F>
  KEEL_HD static void each_entry(F f) {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCols; ++c) f(r, c);
  }

  KEEL_HD void store_run(const T* values, int64_t i, int64_t j, int64_t count) const {
    T* to = target_.into + i * target_.row_stride + j * target_.col_stride;
    if (count >= kWide && target_.col_stride == 1 &&
        reinterpret_cast<std::uintptr_t>(to) % sizeof(Wide<T>) == 0) {
      Wide<T> run;
      for (int v = 0; v < kWide; ++v) run.v[v] = target_.factor * values[v];
      put_global(to, run);
      return;
    }
    for (int v = 0; v < kWide; ++v)
      if (v < count) to[v * target_.col_stride] = target_.factor * values[v];
  }

  const PackedTerm<T>* terms_;
  int steps_;
  GramTarget<T> target_;
  Place place_;
};

}  // namespace keel
