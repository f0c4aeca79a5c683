// Compiled with contraction on: here, unlike in Programs, a * b + c is meant as one instruction.
#include "small_gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "../core/threads.h"
#include "vector_register.h"

namespace keel {
namespace {

using std::int64_t;

// 12 x 2 accumulators, 2 registers of b and 1 of a, of 32; or 6 x 2 of 16.
constexpr int kTileRows = kRegisterBytes == 64 ? 12 : 6;
constexpr int64_t kBlock = 256;  // of k: a panel of b [kBlock, tile] stays in the first-level cache
constexpr int64_t kStrip = 20 * kTileRows;  // rows of a
constexpr double kWorthThreads = 1e6;       // multiplications; below, waking a thread costs more

template <class T>
constexpr int kTileCols = 2 * Vector<T>::kLanes;

/// A tile [kRows, kTileCols] of alpha a b, added to target or put there. a is read through its two
/// strides, b's rows of kTileCols elements lie b_stride apart.
template <class T, int kRows>
void tile(int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_col, const T* b,
          int64_t b_stride, bool add, T* target, int64_t target_stride) {
  using V = Vector<T>;
  typename V::Register sum[kRows][2] = {};
  for (int64_t l = 0; l < k; ++l) {
    const auto left = V::load(b + l * b_stride);
    const auto right = V::load(b + l * b_stride + V::kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const T factor = a[r * a_row + l * a_col];
      sum[r][0] += factor * left;
      sum[r][1] += factor * right;
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    T* row = target + r * target_stride;
    for (int half = 0; half < 2; ++half) {
      T* to = row + half * V::kLanes;
      V::store(to, add ? V::load(to) + alpha * sum[r][half] : alpha * sum[r][half]);
    }
  }
}

template <class T, int kRows = kTileRows>
void tile_of(int64_t rows, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_col, const T* b,
             int64_t b_stride, bool add, T* target, int64_t target_stride) {
  if (rows == kRows)
    tile<T, kRows>(k, alpha, a, a_row, a_col, b, b_stride, add, target, target_stride);
  else if constexpr (kRows > 1)
    tile_of<T, kRows - 1>(rows, k, alpha, a, a_row, a_col, b, b_stride, add, target, target_stride);
}

/// to[j][i] = from[i][j] for 8 x 8 floats, in registers: pairs, then quadruples, then halves.
inline void transpose_8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Unaligned __attribute__((vector_size(32), aligned(4)));
  Eight row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i) row[i] = *reinterpret_cast<const Unaligned*>(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int half = 0; half < 8; half += 4)
    for (int i = 0; i < 2; ++i) {
      const Eight a = pair[half + i], b = pair[half + i + 2];
      quad[half + 2 * i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      quad[half + 2 * i + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int j = 0; j < 4; ++j) {
    const Eight a = quad[j], b = quad[j + 4];
    *reinterpret_cast<Unaligned*>(to + j * to_stride) =
        __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Unaligned*>(to + (j + 4) * to_stride) =
        __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// b's columns [first, first + count) of rows [at, at + depth) as a panel [depth, kTileCols],
/// padded with zeros.
template <class T>
void pack(const SmallGemm<T>& p, int64_t at, int64_t depth, int64_t first, int64_t count,
          T* panel) {
  constexpr int64_t kCols = kTileCols<T>;
  if (count < kCols) std::fill(panel, panel + depth * kCols, T(0));
  if (!p.transpose_b) {
    const T* row = p.b + at * p.n + first;
    if (count == kCols)  // a constant size is a few moves, another a call
      for (int64_t l = 0; l < depth; ++l)
        std::memcpy(panel + l * kCols, row + l * p.n, kCols * sizeof(T));
    else
      for (int64_t l = 0; l < depth; ++l)
        for (int64_t j = 0; j < count; ++j) panel[l * kCols + j] = row[l * p.n + j];
    return;
  }
  // Eight columns at a time: their reads run along rows of b, their writes share cache lines.
  constexpr int64_t kEight = 8;
  for (int64_t j = 0; j < count; j += kEight) {
    const int64_t strip = std::min(kEight, count - j);
    const T* from = p.b + (first + j) * p.k + at;
    T* to = panel + j;
    int64_t l = 0;
    if constexpr (sizeof(T) == 4)
      for (; strip == kEight && l + kEight <= depth; l += kEight)
        transpose_8x8(from + l, p.k, to + l * kCols, kCols);
    for (; l < depth; ++l)
      for (int64_t s = 0; s < strip; ++s) to[l * kCols + s] = from[s * p.k + l];
  }
}

/// A strip of a transposed a, rows [begin, end) of op(a) and depth columns from at on, as tiles
/// [depth, kTileRows]. Where they lie, its rows are m apart: for the powers of two that widths tend
/// to be, that is a handful of cache sets.
template <class T>
void pack_strip(const SmallGemm<T>& p, int64_t at, int64_t depth, int64_t begin, int64_t end,
                T* strip) {
  for (int64_t l = 0; l < depth; ++l) {
    const T* row = p.a + (at + l) * p.m;
    T* to = strip + l * kTileRows;
    int64_t i = begin;
    for (; i + kTileRows <= end; i += kTileRows, to += depth * kTileRows)
      std::memcpy(to, row + i, kTileRows * sizeof(T));
    for (int64_t r = 0; i + r < end; ++r) to[r] = row[i + r];
  }
}

/// A tile of b that lies as the micro-kernel wants it, and that too few rows use to pay for
/// packing.
template <class T>
bool reads_b_directly(const SmallGemm<T>& p, int64_t count) {
  return !p.transpose_b && count == kTileCols<T> && p.m <= 2 * kTileRows;
}

/// Rows [begin, end) of c += alpha a b, a and b cut to depth from k = at on. panels: b's packed
/// tiles; strip: a's, where a is transposed.
template <class T>
void add_block(const SmallGemm<T>& p, int64_t at, int64_t depth, int64_t begin, int64_t end,
               const T* panels, const T* strip) {
  constexpr int64_t kCols = kTileCols<T>;
  alignas(64) T edge[kTileRows * kCols];
  const bool add = at > 0 || p.beta != 0;
  const int64_t a_row = p.transpose_a ? 1 : p.k, a_col = p.transpose_a ? kTileRows : 1;
  for (int64_t first = 0; first < p.n; first += kCols) {
    const int64_t count = std::min(kCols, p.n - first);
    const bool direct = reads_b_directly(p, count);
    const T* b = direct ? p.b + at * p.n + first : panels + first * kBlock;
    const int64_t b_stride = direct ? p.n : kCols;
    for (int64_t i = begin; i < end; i += kTileRows) {
      const int64_t rows = std::min<int64_t>(kTileRows, end - i);
      const T* a = p.transpose_a ? strip + (i - begin) * depth : p.a + i * a_row + at;
      T* target = p.c + i * p.n + first;
      if (count == kCols) {
        tile_of<T>(rows, depth, p.alpha, a, a_row, a_col, b, b_stride, add, target, p.n);
        continue;
      }
      tile_of<T>(rows, depth, p.alpha, a, a_row, a_col, b, b_stride, false, edge, kCols);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < count; ++j) {
          T& cell = target[r * p.n + j];
          cell = add ? cell + edge[r * kCols + j] : edge[r * kCols + j];
        }
    }
  }
}

/// c [m] = a b for a single column b: a dot product a row, in kLanes * 4 strided sums.
template <class T>
void matrix_vector(const SmallGemm<T>& p, int64_t begin, int64_t end) {
  constexpr int64_t kLanes = 4 * Vector<T>::kLanes;
  for (int64_t i = begin; i < end; ++i) {
    const T* row = p.a + i * p.k;
    alignas(64) T sum[kLanes] = {};
    const int64_t whole = p.k - p.k % kLanes;
    for (int64_t l = 0; l < whole; l += kLanes)
      for (int64_t s = 0; s < kLanes; ++s) sum[s] += row[l + s] * p.b[l + s];
    for (int64_t l = whole; l < p.k; ++l) sum[l - whole] += row[l] * p.b[l];
    for (int64_t distance = kLanes / 2; distance > 0; distance /= 2)
      for (int64_t s = 0; s < distance; ++s) sum[s] += sum[s + distance];
    p.c[i] = p.beta == 0 ? p.alpha * sum[0] : p.c[i] + p.alpha * sum[0];
  }
}

template <class T>
void rows_of(const SmallGemm<T>& p, int64_t begin, int64_t end) {
  if (p.beta != 0 && p.beta != 1)
    for (int64_t i = begin * p.n; i < end * p.n; ++i) p.c[i] *= p.beta;
  if (p.n == 1 && !p.transpose_a) return matrix_vector(p, begin, end);
  constexpr int64_t kCols = kTileCols<T>;
  const int64_t panels_size = (p.n + kCols - 1) / kCols * kCols * kBlock;
  thread_local std::vector<T> scratch;  // grows to the largest product of its thread, then stays
  const auto needed = static_cast<std::size_t>(panels_size + kStrip * kBlock);
  if (scratch.size() < needed) scratch.resize(needed);
  T *panels = scratch.data(), *strip = scratch.data() + panels_size;
  for (int64_t at = 0; at < p.k; at += kBlock) {
    const int64_t depth = std::min(kBlock, p.k - at);
    for (int64_t first = 0; first < p.n; first += kCols) {
      const int64_t count = std::min(kCols, p.n - first);
      if (!reads_b_directly(p, count)) pack(p, at, depth, first, count, panels + first * kBlock);
    }
    // Strips of a that stay in the second-level cache while all of b's tiles pass over them.
    for (int64_t i = begin; i < end; i += kStrip) {
      const int64_t strip_end = std::min(i + kStrip, end);
      if (p.transpose_a) pack_strip(p, at, depth, i, strip_end, strip);
      add_block(p, at, depth, i, strip_end, panels, strip);
    }
  }
}

}  // namespace

template <class T>
void SmallGemm<T>::run() const {
  // One column of a transposed a: its transpose, one row, reads a along its rows.
  if (n == 1 && transpose_a) {
    SmallGemm<T>{false, false, 1, m, k, alpha, beta, b, a, c}.run();
    return;
  }
  const int64_t strips = (m + kTileRows - 1) / kTileRows;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(work / kWorthThreads), 1, strips);
  // A thread that is one of several works alone: parts would each pack the right operand again.
  if (parts == 1 || inside_parallel_region()) return rows_of(*this, 0, m);
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part)
    rows_of(*this, strips * part / parts * kTileRows,
            std::min(m, strips * (part + 1) / parts * kTileRows));
}

template struct SmallGemm<float>;
template struct SmallGemm<double>;

}  // namespace keel
