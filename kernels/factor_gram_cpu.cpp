// Compiled with contraction on, as cpu_gemm.cpp: a * b + c is meant as one instruction.
#include <algorithm>
#include <vector>

#include "factor_gram_panels.h"
#include "vector_register.h"

namespace keel {
namespace {

using std::int64_t;

// 14 x 2 accumulators, 2 registers of the right side and 1 of the left, of 32; or 6 x 2 of 16.
constexpr int kRows = kRegisterBytes == 64 ? 14 : 6;
template <class T>
constexpr int kCols = 2 * Vector<T>::kLanes;

/// A microtile of products of rows, one panel of either side, in registers: summed in the order of
/// depth, each step one fused multiplication and addition, then handed over as finish(place, sum).
/// Each use is a function of its own: two microtiles at once would not fit.
template <class T, class F>
[[gnu::always_inline]] inline void multiply(int64_t depth, const T* left, const T* right,
                                            F finish) {
  using Register = typename Vector<T>::Register;
  Register sum[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k, left += kRows, right += kCols<T>) {
    const auto near = *reinterpret_cast<const Register*>(right);
    const auto far = *reinterpret_cast<const Register*>(right + Vector<T>::kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const T factor = left[r];
      sum[r][0] += factor * near;
      sum[r][1] += factor * far;
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
    finish(2 * r, sum[r][0]);
    finish(2 * r + 1, sum[r][1]);
  }
}

/// products = u_left . u_right. [kRows, kCols], aligned, as all microtiles.
template <class T>
[[gnu::noinline]] void first_products(int64_t depth, const T* left, const T* right, T* products) {
  auto* to = reinterpret_cast<typename Vector<T>::Register*>(products);
  multiply(depth, left, right, [&](int at, const auto& sum) { to[at] = sum; });
}

/// theta += products * (scale v_left . v_right + offset).
template <class T>
[[gnu::noinline]] void add_second(int64_t depth, const T* left, const T* right, const T* products,
                                  T scale, T offset, T* theta) {
  using Register = typename Vector<T>::Register;
  const auto* first = reinterpret_cast<const Register*>(products);
  auto* to = reinterpret_cast<Register*>(theta);
  multiply(depth, left, right,
           [&](int at, const auto& sum) { to[at] += first[at] * (scale * sum + offset); });
}

/// theta += scale u_left . u_right.
template <class T>
[[gnu::noinline]] void add_only(int64_t depth, const T* left, const T* right, T scale, T* theta) {
  auto* to = reinterpret_cast<typename Vector<T>::Register*>(theta);
  multiply(depth, left, right, [&](int at, const auto& sum) { to[at] += scale * sum; });
}

/// theta += one term's share of the microtile of panels i and j.
template <class T>
void add_term(const PackedTerm<T>& term, int64_t i, int64_t j, T* theta) {
  const T* u_left = term.u_left + i * term.u_depth * kRows;
  const T* u_right = term.u_right + j * term.u_depth * kCols<T>;
  if (!term.v_left) return add_only(term.u_depth, u_left, u_right, term.scale, theta);
  alignas(64) T products[kRows * kCols<T>];
  first_products(term.u_depth, u_left, u_right, products);
  add_second(term.v_depth, term.v_left + i * term.v_depth * kRows,
             term.v_right + j * term.v_depth * kCols<T>, products, term.scale, term.offset, theta);
}

template <class T>
void store(const T* theta, const GramTarget<T>& target, int64_t i, int64_t j) {
  const int64_t rows = std::min<int64_t>(kRows, target.rows - i);
  for (int64_t r = 0; r < rows; ++r, theta += kCols<T>) {
    int64_t cols = std::min<int64_t>(kCols<T>, target.cols - j);
    if (target.lower) cols = std::min(cols, i + r - j + 1);
    T* to = target.into + (i + r) * target.row_stride + j * target.col_stride;
    if (target.col_stride == 1)
      for (int64_t c = 0; c < cols; ++c) to[c] = target.factor * theta[c];
    else
      for (int64_t c = 0; c < cols; ++c) to[c * target.col_stride] = target.factor * theta[c];
  }
}

int64_t panels_of(int64_t size, int64_t width) { return (size + width - 1) / width; }

// A tile is what a thread takes: panels of the right side that stay in the second-level cache while
// every panel of the left, which stays in the first, passes over them.
struct Tile {
  int64_t row_begin, row_end, col_begin, col_end;  // panels
};
constexpr int64_t kMostCols = 8;

template <class T>
std::vector<Tile> cut(int64_t depth, const GramTarget<T>& target) {
  constexpr int64_t kCacheBytes = 1 << 20, kMostRows = 18, kTiles = 64;
  const int64_t row_panels = panels_of(target.rows, kRows);
  const int64_t col_panels = panels_of(target.cols, kCols<T>);
  const int64_t panel_bytes = std::max<int64_t>(1, depth) * kRegisterBytes * 2;
  const int64_t cols = std::clamp<int64_t>(kCacheBytes / panel_bytes, 1, kMostCols);
  const int64_t rows =
      std::clamp<int64_t>(row_panels * panels_of(col_panels, cols) / kTiles, 1, kMostRows);
  std::vector<Tile> tiles;
  for (int64_t i = 0; i < row_panels; i += rows)
    for (int64_t j = 0; j < col_panels; j += cols) {
      const Tile tile{i, std::min(i + rows, row_panels), j, std::min(j + cols, col_panels)};
      if (!target.lower || tile.col_begin * kCols<T> < tile.row_end * kRows) tiles.push_back(tile);
    }
  return tiles;
}

template <class T>
void run_tile(std::span<const PackedTerm<T>> terms, const GramTarget<T>& target, const Tile& tile,
              T* strip) {
  constexpr int64_t kMicrotile = kRows * kCols<T>;
  for (int64_t i = tile.row_begin; i < tile.row_end; ++i) {
    int64_t end = tile.col_end;
    if (target.lower) end = std::min(end, panels_of((i + 1) * kRows, kCols<T>));
    std::fill(strip, strip + std::max<int64_t>(0, end - tile.col_begin) * kMicrotile, T(0));
    for (const PackedTerm<T>& term : terms)
      for (int64_t j = tile.col_begin; j < end; ++j)
        add_term(term, i, j, strip + (j - tile.col_begin) * kMicrotile);
    for (int64_t j = tile.col_begin; j < end; ++j)
      store(strip + (j - tile.col_begin) * kMicrotile, target, i * kRows, j * kCols<T>);
  }
}

}  // namespace

template <class T>
int CpuGram<T>::panel_rows() {
  return kRows;
}

template <class T>
int CpuGram<T>::panel_cols() {
  return kCols<T>;
}

template <class T>
void CpuGram<T>::run(std::span<const PackedTerm<T>> terms, const GramTarget<T>& target) {
  constexpr double kWorthThreads = 1e6;  // multiplications; below, waking a thread costs more
  int64_t depth = 0;
  for (const PackedTerm<T>& term : terms) depth += term.u_depth + term.v_depth;
  const std::vector<Tile> tiles = cut(depth, target);
  const auto count = static_cast<int64_t>(tiles.size());
  [[maybe_unused]] const bool threads = static_cast<double>(target.rows) *
                                            static_cast<double>(target.cols) *
                                            static_cast<double>(depth) >
                                        kWorthThreads;
#pragma omp parallel for schedule(dynamic) if (threads)
  for (int64_t t = 0; t < count; ++t) {
    alignas(64) T strip[kMostCols * kRows * kCols<T>];
    run_tile(terms, target, tiles[static_cast<std::size_t>(t)], strip);
  }
}

template struct CpuGram<float>;
template struct CpuGram<double>;

}  // namespace keel
