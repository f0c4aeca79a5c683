#include "symmetric_product.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda_libraries.cuh"
#include "launch.cuh"
#include "one_blas_thread.h"
#include "sum.h"

namespace keel {
namespace {

/// y[first, last) += sum over four rows r of x_r a_r, and dot_r = a_r . x over the same columns.
void four_rows(const double* a, int64_t n, int64_t first, int64_t last, const double* x,
               const double* of_row, double* y, double* dot) {
  const double *a0 = a, *a1 = a + n, *a2 = a + 2 * n, *a3 = a + 3 * n;
  const double x0 = of_row[0], x1 = of_row[1], x2 = of_row[2], x3 = of_row[3];
  double d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#pragma omp simd reduction(+ : d0, d1, d2, d3)
  for (int64_t j = first; j < last; ++j) {
    y[j] += (x0 * a0[j] + x1 * a1[j]) + (x2 * a2[j] + x3 * a3[j]);
    d0 += a0[j] * x[j];
    d1 += a1[j] * x[j];
    d2 += a2[j] * x[j];
    d3 += a3[j] * x[j];
  }
  dot[0] += d0, dot[1] += d1, dot[2] += d2, dot[3] += d3;
}

/// What rows [begin, end) of the triangle contribute to y = A x, mirror image included.
void rows_product(const double* a, Triangle triangle, int64_t n, int64_t begin, int64_t end,
                  int64_t k, const double* x, double* y) {
  const bool lower = triangle == Triangle::lower;
  for (int64_t row = begin; row < end; row += 4) {
    const int64_t count = std::min<int64_t>(4, end - row);
    for (int64_t side = 0; side < k; ++side) {
      const double* xs = x + side * n;
      double* ys = y + side * n;
      double dot[4] = {};
      if (count == 4)
        four_rows(a + row * n, n, lower ? 0 : row + 4, lower ? row : n, xs, xs + row, ys, dot);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t i = row + r;
        const double* ai = a + i * n;
        // What is left of the row: all, or the triangle between the four.
        const int64_t from = lower ? (count == 4 ? row : 0) : i + 1;
        const int64_t to = lower ? i : (count == 4 ? row + 4 : n);
        for (int64_t j = from; j < to; ++j) {
          ys[j] += ai[j] * xs[i];
          dot[r] += ai[j] * xs[j];
        }
        ys[i] += dot[r] + ai[i] * xs[i];
      }
    }
  }
}

constexpr int64_t kParts = 32;
constexpr int64_t kNarrow = 8, kColumns = 64;  // right sides: few; those of one call of BLAS

/// Where part p begins, in fours: each part has as much of the triangle as the next.
int64_t part_begin(int64_t n, int64_t part, Triangle triangle) {
  if (part == kParts) return n;
  const double share = static_cast<double>(part) / kParts;
  const double rows = triangle == Triangle::lower ? std::sqrt(share) : 1 - std::sqrt(1 - share);
  return static_cast<int64_t>(rows * static_cast<double>(n)) / 4 * 4;
}

void cpu_narrow_product(const double* a, Triangle triangle, int64_t n, int64_t k, const double* v,
                        double* into) {
  const int64_t size = n * k;
  const Tensor columns = Tensor::empty({size}, DType::f64);
  const Tensor partial = Tensor::empty({kParts * size}, DType::f64);
  double *x = columns.data<double>(), *parts = partial.data<double>();
  [[maybe_unused]] const bool threads = n * size > (int64_t{1} << 17);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t side = 0; side < k; ++side) x[side * n + i] = v[i * k + side];
#pragma omp parallel if (threads)
  {
#pragma omp for schedule(dynamic)
    for (int64_t part = 0; part < kParts; ++part) {
      double* y = parts + part * size;
      std::fill(y, y + size, 0.0);
      rows_product(a, triangle, n, part_begin(n, part, triangle), part_begin(n, part + 1, triangle),
                   k, x, y);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t side = 0; side < k; ++side) {
        double total = 0;
        for (int64_t part = 0; part < kParts; ++part) total += parts[part * size + side * n + i];
        into[i * k + side] = total;
      }
  }
}

void cpu_wide_product(const double* a, Triangle triangle, int64_t n, int64_t k, const double* v,
                      double* into) {
  const auto half = triangle == Triangle::lower ? CblasLower : CblasUpper;
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < k; first += kColumns) {
    [[maybe_unused]] const OneBlasThread one;
    cblas_dsymm(CblasRowMajor, CblasLeft, half, static_cast<int>(n),
                static_cast<int>(std::min(kColumns, k - first)), 1, a, static_cast<int>(n),
                v + first, static_cast<int>(k), 0, into + first, static_cast<int>(k));
  }
}

#ifdef KEEL_WITH_CUDA

/// What 128 columns of a chunk of rows contribute to y = A x, a [n, n]: each entry is read once,
/// for its row and, mirrored, for its column. along [n / 128, n] gets sums along rows, down
/// [chunks, n] sums down columns; where they have nothing of the triangle, zeros. A warp each,
/// eight rows at a time, which are asked for together.
struct SymmetricTile {
  using Scalar = double;
  static constexpr bool kApart = true;
  static constexpr int64_t kChunk = 256, kCols = 128, kRows = 8;
  int64_t n;
  bool lower;
  const double *a, *x;
  double *along, *down;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t chunk, int64_t first, int64_t count) const {
    const int64_t begin = chunk * kChunk, end = begin + kChunk < n ? begin + kChunk : n;
    const int64_t from = lower && begin < first ? first : begin;
    const int64_t to = !lower && end > first + count ? first + count : end;
    double* y = along + first / kCols * n;
    for (int64_t row = begin; row < end; row += count)
      g.each(end - row < count ? end - row : count, [&](auto i) {
        if (row + i < from || row + i >= to) y[row + i] = 0;
      });
    const auto here = g.load(count, x + first);
    auto mirrored = g.zeros(count, down + chunk * n + first);
    for (int64_t row = from; row < to; row += kRows) {
      const auto at = [&](int64_t r) {  // behind the last row that one again, which does not count
        return g.load(count, a + (row + r < to ? row + r : to - 1) * n + first);
      };
      const decltype(at(0)) held[kRows] = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
      const auto dots = g.sum(count, [&](auto j) {
        Sums<double, kRows> part{};
        for (int r = 0; r < kRows; ++r)
          if (lower ? first + j <= row + r : first + j >= row + r) part.v[r] = held[r][j] * here[j];
        return part;
      });
      g.each(count, [&](auto j) {
        double sum = mirrored[j];
        for (int r = 0; r < kRows; ++r)
          if (row + r < to && (lower ? first + j < row + r : first + j > row + r))
            sum += held[r][j] * x[row + r];
        mirrored[j] = sum;
      });
      g.once([&] {
        for (int r = 0; r < kRows; ++r)
          if (row + r < to) y[row + r] = dots[r];
      });
    }
    g.flush(count, mirrored, down + chunk * n + first);
  }
};

/// One vector: of cuBLAS' symv the fast way is the one by atomics, which add up in any order
/// (cublasSetAtomicsMode).
void cuda_vector_product(const Tensor& a, Triangle triangle, const Tensor& v, const Tensor& into) {
  using Tile = SymmetricTile;
  const int64_t n = a.size(0), chunks = (n + Tile::kChunk - 1) / Tile::kChunk;
  const int64_t tiles = (n + Tile::kCols - 1) / Tile::kCols;
  const Tensor parts = Tensor::empty({tiles + chunks, n}, DType::f64, a.device());
  double* const along = parts.data<double>();
  launch_columns(a.device(), chunks, n,
                 Tile{n, triangle == Triangle::lower, a.data<double>(), v.data<double>(), along,
                      along + tiles * n});
  sum_rows(parts, 1, false, into.reshape({n}));
}

/// Columns first, v is [k, n] and the row-major lower triangle is the upper one. With numbers of 64
/// bits: from 46,341 rows on a has 2^31 elements.
void cuda_symmetric_product(const Tensor& a, Triangle triangle, const Tensor& v,
                            const Tensor& into) {
  const int64_t n = v.size(0), k = v.size(1);
  if (k == 1) return cuda_vector_product(a, triangle, v, into);
  const auto half = triangle == Triangle::lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cublasHandle_t handle = cublas_handle(v.device(), DType::f64);
  const double one = 1, zero = 0;
  cublas_check(cublasDsymm_64(handle, CUBLAS_SIDE_RIGHT, half, k, n, &one, a.data<double>(), n,
                              v.data<double>(), k, &zero, into.data<double>(), k),
               "cublasDsymm_64");
}

#endif

}  // namespace

void symmetric_product(const Tensor& a, Triangle triangle, const Tensor& v, const Tensor& into) {
  check<ShapeError>(a.rank() == 2 && a.size(0) == a.size(1), "symmetric_product",
                    "got {}, wanted [n, n]", a.shape());
  const int64_t n = a.size(0);
  check_same_kind("symmetric_product", "a", a, "v", v);
  check_same_kind("symmetric_product", "a", a, "into", into);
  check<ShapeError>(a.dtype() == DType::f64, "symmetric_product", "got float32, wanted float64");
  check<ShapeError>(v.rank() == 2 && v.size(0) == n && into.shape() == v.shape(),
                    "symmetric_product", "got a {}, v {}, into {}: they do not fit", a.shape(),
                    v.shape(), into.shape());
  check<ShapeError>(n <= std::numeric_limits<int>::max(), "symmetric_product",
                    "got {} rows, wanted fewer than 2^31", n);
  if (v.elements() == 0) return;
#ifdef KEEL_WITH_CUDA
  if (a.device().is_cuda()) return cuda_symmetric_product(a, triangle, v, into);
#endif
  const int64_t k = v.size(1);
  (k <= kNarrow ? cpu_narrow_product : cpu_wide_product)(a.data<double>(), triangle, n, k,
                                                         v.data<double>(), into.data<double>());
}

}  // namespace keel
