#include "triangle.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda_libraries.cuh"
#include "launch.cuh"
#include "one_blas_thread.h"

namespace keel {
namespace {

template <class T>
struct SwapDiagonal {
  using Scalar = T;
  int64_t n;
  T *a, *d;
  bool only_read;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    g.each(count, [&](auto i) {
      const int64_t row = first + i;
      const T mine = a[row * n + row];
      if (!only_read) a[row * n + row] = d[row];
      d[row] = mine;
    });
  }
};

/// Rows i and n - 1 - i together: every pair is as long as the next.
template <class From, class To>
struct ScaleLower {
  using Scalar = double;
  static constexpr bool kApart = true;
  int64_t n;
  double value;
  const double* scale;
  const From* a;
  To* into;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t pair) const {
    scale_row(g, pair);
    if (pair != n - 1 - pair) scale_row(g, n - 1 - pair);
  }

  template <class Group>
  KEEL_HD void scale_row(Group g, int64_t row) const {
    const double mine = scale[row];
    const From* from = a + row * n;
    To* to = into + row * n;
    g.each(row, [&](auto j) {
      to[j] = static_cast<To>(static_cast<double>(from[j]) * mine * scale[j]);
    });
    g.once([&] { to[row] = static_cast<To>(value); });
  }
};

/// What an entry below the diagonal does to its mirror image.
enum class Mirror { copy, swap };

/// A tile of 32 x 32, in patches: a GPU's warp writes eight elements of four rows, four sectors of
/// memory, and reads four of eight rows.
template <class T, Mirror kMirror>
struct MirrorLower {
  using Scalar = T;
  static constexpr int64_t kSide = 32;
  int64_t n;
  T* a;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t tile_row, int64_t tile_col) const {
    if (tile_col > tile_row) return;
    constexpr int64_t kTall = 4, kWide = 8, kPatch = kTall * kWide, kAcross = kSide / kWide;
    g.each(kSide * kSide, [&](auto e) {
      const int64_t patch = e / kPatch, within = e % kPatch;
      const int64_t i = tile_row * kSide + patch % kAcross * kWide + within % kWide;
      const int64_t j = tile_col * kSide + patch / kAcross * kTall + within / kWide;
      if (i <= j || i >= n) return;
      const T low = a[i * n + j];
      if constexpr (kMirror == Mirror::swap) a[i * n + j] = a[j * n + i];
      a[j * n + i] = low;
    });
  }
};

template <class T, Mirror kMirror>
struct MirrorTiles {
  using Scalar = T;
  using Tile = MirrorLower<T, kMirror>;
  static constexpr bool kApart = true;
  static constexpr int kTile = Tile::kSide * Tile::kSide;
  static constexpr int kNarrowest = kTile, kWidest = kTile;
  int64_t across;
  Tile mirror;
  template <class Group>
  KEEL_HD void operator()(Group g, int64_t tile) const {
    mirror(g, tile / across, tile % across);
  }
};

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

/// Columns first, v is [k, n] and the row-major lower triangle is the upper one. With numbers of 64
/// bits: from 46,341 rows on a has 2^31 elements.
void cuda_symmetric_product(const Tensor& a, Triangle triangle, const Tensor& v,
                            const Tensor& into) {
  const int64_t n = v.size(0), k = v.size(1);
  const auto half = triangle == Triangle::lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cublasHandle_t handle = cublas_handle(v.device(), DType::f64);
  const double one = 1, zero = 0;
  if (k == 1)
    cublas_check(cublasDsymv_64(handle, half, n, &one, a.data<double>(), n, v.data<double>(), 1,
                                &zero, into.data<double>(), 1),
                 "cublasDsymv_64");
  else
    cublas_check(cublasDsymm_64(handle, CUBLAS_SIDE_RIGHT, half, k, n, &one, a.data<double>(), n,
                                v.data<double>(), k, &zero, into.data<double>(), k),
                 "cublasDsymm_64");
}

#endif

int64_t check_square(const char* tag, const Tensor& a) {
  check<ShapeError>(a.rank() == 2 && a.size(0) == a.size(1), tag, "got {}, wanted [n, n]",
                    a.shape());
  return a.size(0);
}

template <Mirror kMirror>
void mirror_tiles(const char* tag, const Tensor& a) {
  const int64_t n = check_square(tag, a);
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    using Tiles = MirrorTiles<T, kMirror>;
    const int64_t across = (n + Tiles::Tile::kSide - 1) / Tiles::Tile::kSide;
    launch_rows(a.device(), across * across, Tiles::kTile, Tiles{across, {n, a.data<T>()}});
  });
}

void run_diagonal(const char* tag, const Tensor& a, const Tensor& d, bool only_read) {
  const int64_t n = check_square(tag, a);
  check_same_kind(tag, "a", a, "d", d);
  check<ShapeError>(d.shape() == Shape{n}, tag, "got d {}, wanted [{}]", d.shape(), n);
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(a.device(), n, SwapDiagonal<T>{n, a.data<T>(), d.data<T>(), only_read});
  });
}

}  // namespace

Tensor diagonal(const Tensor& a) {
  const Tensor d = Tensor::empty({check_square("diagonal", a)}, a.dtype(), a.device());
  run_diagonal("diagonal", a, d, true);
  return d;
}

void swap_diagonal(const Tensor& a, const Tensor& d) { run_diagonal("swap_diagonal", a, d, false); }

void scale_lower(const Tensor& a, const Tensor& scale, double value, const Tensor& into) {
  const int64_t n = check_square("scale_lower", a);
  check<ShapeError>(into.shape() == a.shape() && scale.shape() == Shape{n}, "scale_lower",
                    "got a {}, scale {}, into {}: they do not fit", a.shape(), scale.shape(),
                    into.shape());
  check<DeviceError>(into.device() == a.device() && scale.device() == a.device(), "scale_lower",
                     "a is on {}, scale on {}, into on {}: wanted one device", a.device(),
                     scale.device(), into.device());
  dispatch(a.dtype(), [&](auto from) {
    dispatch(into.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      launch_rows(
          a.device(), (n + 1) / 2, n,
          ScaleLower<From, To>{n, value, scale.data<double>(), a.data<From>(), into.data<To>()});
    });
  });
}

void mirror_lower(const Tensor& a) { mirror_tiles<Mirror::copy>("mirror_lower", a); }
void swap_triangles(const Tensor& a) { mirror_tiles<Mirror::swap>("swap_triangles", a); }

void symmetric_product(const Tensor& a, Triangle triangle, const Tensor& v, const Tensor& into) {
  const int64_t n = check_square("symmetric_product", a);
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
