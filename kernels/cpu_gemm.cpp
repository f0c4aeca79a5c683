// Compiled with contraction on: here, unlike in Programs, a * b + c is meant as one instruction.
#include "cpu_gemm.h"

#include <algorithm>
#include <cstring>

#include "../core/each_in_parallel.h"
#include "../core/threads.h"
#include "cpu_gemm_tile.h"

namespace keel {
namespace {

using namespace detail;  // NOLINT: this file's own other half

constexpr int64_t kDepth = 256;                 // of k, summed before it is added to c
constexpr int64_t kPanelBytes = 512 << 10;      // of b's panels, in the second-level cache
constexpr int64_t kStripRows = 20 * kTileRows;  // of a, beside them
constexpr int64_t kFarApart = 2048;    // bytes from row to row, whose lines share few cache sets
constexpr double kWorthThreads = 1e6;  // multiplications; below, waking a thread costs more

// Rows of a strip as they lie, but not a power of two apart.
template <class T>
constexpr int64_t kStripStride = kDepth + kAlignment / sizeof(T);

/// A part of a product that one thread does: rows [row, row_end) and columns [col, col_end) of c,
/// whose elements lie c_row and c_col apart.
template <class T>
class Part {
 public:
  Part(const CpuGemm<T>& p, int64_t c_row, int64_t c_col, int64_t row, int64_t row_end, int64_t col,
       int64_t col_end)
      : p_(p),
        c_row_(c_row),
        c_col_(c_col),
        row_(row),
        row_end_(row_end),
        col_(col),
        col_end_(col_end) {
    const int64_t cols = (col_end - col + kCols - 1) / kCols * kCols;
    block_cols_ = std::min(cols, kPanelBytes / int64_t{sizeof(T)} / kDepth / kCols * kCols);
  }

  void run() const {
    if (p_.beta != 0 && p_.beta != 1)
      for (int64_t i = row_; i < row_end_; ++i)
        for (int64_t j = col_; j < col_end_; ++j) p_.c[i * c_row_ + j * c_col_] *= p_.beta;
    T* panels =
        scratch<T>(static_cast<std::size_t>(block_cols_ * kDepth + kStripRows * kStripStride<T>));
    T* strip = panels + block_cols_ * kDepth;
    for (int64_t first = col_; first < col_end_; first += block_cols_) {
      const int64_t last = std::min(first + block_cols_, col_end_);
      for (int64_t at = 0; at < p_.k; at += kDepth)
        add_block(first, last, at, std::min(kDepth, p_.k - at), panels, strip);
    }
  }

 private:
  static constexpr int64_t kCols = kTileCols<T>;

  /// Few rows do not repay packing a right operand that already lies as the micro-kernel wants it.
  /// Where its rows are far apart, the processor would not fetch them ahead.
  bool reads_b_directly() const {
    return !p_.transpose_b && row_end_ - row_ <= 2 * kTileRows &&
           p_.ldb * int64_t{sizeof(T)} < kFarApart;
  }
  /// Rows that are far apart share a handful of cache sets, which pays where they are read often.
  bool packs_a() const {
    return p_.transpose_a ||
           (p_.lda * int64_t{sizeof(T)} >= kFarApart && col_end_ - col_ >= 8 * kCols);
  }

  /// Columns [first, last) of c += alpha a b, a and b cut to depth from k = at on.
  void add_block(int64_t first, int64_t last, int64_t at, int64_t depth, T* panels,
                 T* strip) const {
    const bool direct = reads_b_directly();
    if (!direct)
      pack_b(first, last, at, depth, panels);
    else if ((last - first) % kCols != 0)
      pack_b(last - (last - first) % kCols, last, at, depth, panels);
    // Strips of a stay in the cache while all of b's tiles pass over them.
    for (int64_t i = row_; i < row_end_; i += kStripRows) {
      const int64_t end = std::min(i + kStripRows, row_end_);
      if (packs_a()) pack_a(i, end, at, depth, strip);
      for (int64_t j = first; j < last; j += kCols) {
        const int64_t count = std::min(kCols, last - j);
        if (!direct)
          add_tiles(i, end, j, count, at, depth, panels + (j - first) * kDepth, kCols, strip);
        else if (count == kCols)
          add_tiles(i, end, j, count, at, depth, p_.b + at * p_.ldb + j, p_.ldb, strip);
        else
          add_tiles(i, end, j, count, at, depth, panels, kCols, strip);
      }
    }
  }

  /// Rows [begin, end), `count` columns from `col` on.
  void add_tiles(int64_t begin, int64_t end, int64_t col, int64_t count, int64_t at, int64_t depth,
                 const T* b, int64_t b_stride, const T* strip) const {
    alignas(kAlignment) T edge[kTileRows * kCols];
    const bool add = at > 0 || p_.beta != 0, packed = packs_a(),
               narrow = count <= Vector<T>::kLanes;
    const int64_t a_row = p_.transpose_a ? 1 : packed ? kStripStride<T> : p_.lda;
    const int64_t a_col = p_.transpose_a ? kTileRows : 1;
    for (int64_t i = begin; i < end; i += kTileRows) {
      const int64_t rows = std::min<int64_t>(kTileRows, end - i);
      const T* a = !packed ? p_.a + i * p_.lda + at
                           : strip + (i - begin) * (p_.transpose_a ? depth : kStripStride<T>);
      T* target = p_.c + i * c_row_ + col * c_col_;
      if (c_col_ == 1 && count == kCols) {
        tile_of<T, 2>(rows, depth, p_.alpha, a, a_row, a_col, b, b_stride, add, target, c_row_);
        continue;
      }
      if (narrow)
        tile_of<T, 1>(rows, depth, p_.alpha, a, a_row, a_col, b, b_stride, false, edge, kCols);
      else
        tile_of<T, 2>(rows, depth, p_.alpha, a, a_row, a_col, b, b_stride, false, edge, kCols);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < count; ++j) {
          T& cell = target[r * c_row_ + j * c_col_];
          cell = add ? cell + edge[r * kCols + j] : edge[r * kCols + j];
        }
    }
  }

  /// b's columns [first, last) as panels [depth, kCols], kDepth rows apart, padded with zeros.
  void pack_b(int64_t first, int64_t last, int64_t at, int64_t depth, T* panels) const {
    if (p_.transpose_b)
      for (int64_t j = first; j < last; j += kCols)
        pack_transposed(j, std::min(kCols, last - j), at, depth, panels + (j - first) * kDepth);
    else
      // Eight rows at a time: as many streams as the processor fetches ahead.
      for (int64_t l = 0; l < depth; l += 8)
        pack_rows(first, last, at, l, std::min<int64_t>(l + 8, depth), panels);
  }

  void pack_rows(int64_t first, int64_t last, int64_t at, int64_t begin, int64_t end,
                 T* panels) const {
    const T* from = p_.b + at * p_.ldb;
    T* to = panels;
    int64_t j = first;
    for (; j + kCols <= last; j += kCols, to += kDepth * kCols)
      for (int64_t l = begin; l < end; ++l)  // a constant size is a few moves, another a call
        std::memcpy(to + l * kCols, from + l * p_.ldb + j, kCols * sizeof(T));
    if (j == last) return;
    for (int64_t l = begin; l < end; ++l)
      for (int64_t s = 0; s < kCols; ++s)
        to[l * kCols + s] = j + s < last ? from[l * p_.ldb + j + s] : T(0);
  }

  // Eight columns at a time: their reads run along rows of b, their writes share cache lines.
  void pack_transposed(int64_t first, int64_t count, int64_t at, int64_t depth, T* panel) const {
    constexpr int64_t kEight = 8;
    if (count < kCols) std::fill(panel, panel + depth * kCols, T(0));
    for (int64_t j = 0; j < count; j += kEight) {
      const int64_t columns = std::min(kEight, count - j);
      const T* from = p_.b + (first + j) * p_.ldb + at;
      T* to = panel + j;
      int64_t l = 0;
      if constexpr (sizeof(T) == 4)
        for (; columns == kEight && l + kEight <= depth; l += kEight)
          transpose_8x8(from + l, p_.ldb, to + l * kCols, kCols);
      for (; l < depth; ++l)
        for (int64_t s = 0; s < columns; ++s) to[l * kCols + s] = from[s * p_.ldb + l];
    }
  }

  /// Rows [begin, end) of op(a), depth columns from `at` on: as they lie, kStripStride apart; of a
  /// transposed a as tiles [depth, kTileRows].
  void pack_a(int64_t begin, int64_t end, int64_t at, int64_t depth, T* strip) const {
    if (!p_.transpose_a) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(strip + (i - begin) * kStripStride<T>, p_.a + i * p_.lda + at,
                    static_cast<std::size_t>(depth) * sizeof(T));
      return;
    }
    for (int64_t l = 0; l < depth; ++l) {
      const T* row = p_.a + (at + l) * p_.lda;
      T* to = strip + l * kTileRows;
      int64_t i = begin;
      for (; i + kTileRows <= end; i += kTileRows, to += depth * kTileRows)
        std::memcpy(to, row + i, kTileRows * sizeof(T));
      for (int64_t r = 0; i + r < end; ++r) to[r] = row[i + r];
    }
  }

  const CpuGemm<T>& p_;
  int64_t c_row_, c_col_, row_, row_end_, col_, col_end_, block_cols_;
};

/// Rows [begin, end) of c = alpha a b for a single column b: a dot product a row, in 4 registers of
/// strided sums. Elements of b and of c lie side by side.
template <class T>
void matrix_vector(const CpuGemm<T>& p, int64_t begin, int64_t end) {
  constexpr int64_t kSums = 4 * Vector<T>::kLanes;
  for (int64_t i = begin; i < end; ++i) {
    const T* row = p.a + i * p.lda;
    alignas(kAlignment) T sum[kSums] = {};
    const int64_t whole = p.k - p.k % kSums;
    for (int64_t l = 0; l < whole; l += kSums)
      for (int64_t s = 0; s < kSums; ++s) sum[s] += row[l + s] * p.b[l + s];
    for (int64_t l = whole; l < p.k; ++l) sum[l - whole] += row[l] * p.b[l];
    for (int64_t distance = kSums / 2; distance > 0; distance /= 2)
      for (int64_t s = 0; s < distance; ++s) sum[s] += sum[s + distance];
    p.c[i] = p.beta == 0 ? p.alpha * sum[0] : p.beta * p.c[i] + p.alpha * sum[0];
  }
}

/// f(begin, end) of parts of [0, size), cut at multiples of unit, each on a thread.
template <class F>
void in_parts(double work, int64_t size, int64_t unit, F f) {
  const int64_t units = (size + unit - 1) / unit;
  const auto worth = static_cast<int64_t>(std::min(work / kWorthThreads, 1e9));
  // A thread that is one of several works alone: parts would each pack operands again.
  const int64_t parts =
      inside_parallel_region()
          ? 1
          : std::max<int64_t>(1, std::min({worth, units, static_cast<int64_t>(thread_count())}));
  if (parts == 1) return f(0, size);
  ParallelProblem problem;  // no memory to pack operands in, say
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part)
    problem.keep(
        [&] { f(units * part / parts * unit, std::min(size, units * (part + 1) / parts * unit)); });
  problem.rethrow();
}

/// c's elements lie c_row and c_col apart.
template <class T>
void run_product(const CpuGemm<T>& p, int64_t c_row, int64_t c_col) {
  const double work =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const bool side_by_side = p.transpose_b || p.ldb == 1;
  if (p.n == 1 && !p.transpose_a && c_row == 1 && side_by_side)
    return in_parts(work, p.m, kTileRows,
                    [&](int64_t begin, int64_t end) { matrix_vector(p, begin, end); });
  // Each thread packs all of the operand that is not cut.
  const int64_t cols = kTileCols<T>;
  if (p.m / kTileRows >= p.n / cols)
    in_parts(work, p.m, kTileRows, [&](int64_t begin, int64_t end) {
      Part<T>(p, c_row, c_col, begin, end, 0, p.n).run();
    });
  else
    in_parts(work, p.n, cols, [&](int64_t begin, int64_t end) {
      Part<T>(p, c_row, c_col, 0, p.m, begin, end).run();
    });
}

}  // namespace

template <class T>
void CpuGemm<T>::run() const {
  // c' = op(b)' op(a)', so that a single row or column meets a matrix along that one's rows. A row
  // of a small product keeps the bits that it has among others.
  const bool row = m == 1 && transpose_b && !small();
  if (row || (n == 1 && transpose_a))
    run_product(
        CpuGemm<T>{!transpose_b, !transpose_a, n, m, k, alpha, beta, b, ldb, a, lda, c, ldc}, 1,
        ldc);
  else
    run_product(*this, ldc, 1);
}

template struct CpuGemm<float>;
template struct CpuGemm<double>;

}  // namespace keel
