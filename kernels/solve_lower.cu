#include "solve_lower.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuda_libraries.cuh"
#include "one_blas_thread.h"

namespace keel {
namespace {

using std::int64_t;

/// Solves with a diagonal block of L, of `rows` rows and row stride n, for b [rows, k].
template <class T>
void solve_block(CBLAS_TRANSPOSE op, int64_t rows, int64_t n, int64_t k, const T* l, T* b) {
  [[maybe_unused]] const OneBlasThread one;
  const int size = static_cast<int>(rows), stride = static_cast<int>(n);
  const int width = static_cast<int>(k);
  if constexpr (std::is_same_v<T, float>) {
    if (k == 1)
      cblas_strsv(CblasRowMajor, CblasLower, op, CblasNonUnit, size, l, stride, b, 1);
    else
      cblas_strsm(CblasRowMajor, CblasLeft, CblasLower, op, CblasNonUnit, size, width, 1, l, stride,
                  b, width);
  } else {
    if (k == 1)
      cblas_dtrsv(CblasRowMajor, CblasLower, op, CblasNonUnit, size, l, stride, b, 1);
    else
      cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, op, CblasNonUnit, size, width, 1, l, stride,
                  b, width);
  }
}

/// into [out, k] -= op(l) x, with l [rows, cols] of row stride n. A few right sides: one at a time.
template <class T>
void subtract_product(CBLAS_TRANSPOSE op, int64_t rows, int64_t cols, int64_t n, int64_t k,
                      const T* l, const T* x, T* into) {
  constexpr int64_t kNarrow = 8;
  [[maybe_unused]] const OneBlasThread one;
  const int height = static_cast<int>(rows), width = static_cast<int>(cols);
  const int stride = static_cast<int>(n), sides = static_cast<int>(k);
  const int out = op == CblasNoTrans ? height : width, inner = op == CblasNoTrans ? width : height;
  for (int64_t side = 0; k <= kNarrow && side < k; ++side)
    if constexpr (std::is_same_v<T, float>)
      cblas_sgemv(CblasRowMajor, op, height, width, -1, l, stride, x + side, sides, 1, into + side,
                  sides);
    else
      cblas_dgemv(CblasRowMajor, op, height, width, -1, l, stride, x + side, sides, 1, into + side,
                  sides);
  if (k <= kNarrow) return;
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, op, CblasNoTrans, out, sides, inner, -1, l, stride, x, sides, 1,
                into, sides);
  else
    cblas_dgemm(CblasRowMajor, op, CblasNoTrans, out, sides, inner, -1, l, stride, x, sides, 1,
                into, sides);
}

// OpenBLAS solves narrow systems on one thread. Cut by the shape alone: a block of the diagonal,
// then what it contributes to the rows that are left, on all threads.
constexpr int64_t kDiagonal = 256, kRows = 512;
constexpr int64_t kWorthThreads = int64_t{1} << 17;  // multiplications; fewer do not repay waking

template <class T>
void cpu_solve(bool transposed, int64_t n, int64_t k, const T* l, T* b) {
  const auto op = transposed ? CblasTrans : CblasNoTrans;
  const int64_t blocks = (n + kDiagonal - 1) / kDiagonal;
  [[maybe_unused]] const bool threads = n * n * k / 2 > kWorthThreads;
#pragma omp parallel if (threads)
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t block = transposed ? blocks - 1 - step : step;
    const int64_t begin = block * kDiagonal, end = std::min(n, begin + kDiagonal);
#pragma omp single
    solve_block(op, end - begin, n, k, l + begin * n + begin, b + begin * k);
    const int64_t first = transposed ? 0 : end, last = transposed ? begin : n;
#pragma omp for schedule(static)
    for (int64_t i = first; i < last; i += kRows) {
      const int64_t count = std::min(kRows, last - i);
      if (transposed)
        subtract_product(op, end - begin, count, n, k, l + begin * n + i, b + begin * k, b + i * k);
      else
        subtract_product(op, count, end - begin, n, k, l + i * n + begin, b + begin * k, b + i * k);
    }
  }
}

#ifdef KEEL_WITH_CUDA

// Of a vector, the rows that trsv solves at a time, one after another as it must. What they
// contribute to the others is a product with a matrix, which keeps all of a GPU busy. trsm, made
// for many right sides, would cut the triangle into many small products of one row.
constexpr int64_t kVectorRows = 2048;

/// cuBLAS' routine for T: of float32, or of float64.
template <class T, class Single, class Twice>
constexpr auto routine(Single single, Twice twice) {
  if constexpr (std::is_same_v<T, float>)
    return single;
  else
    return twice;
}

/// L x = b, or L' x = b, for one b. Columns first, the row-major L is the upper triangle of L'.
template <class T>
void cuda_solve_vector(bool transposed, cublasHandle_t handle, int64_t n, const T* l, T* b) {
  const auto op = transposed ? CUBLAS_OP_N : CUBLAS_OP_T;
  const auto trsv = routine<T>(cublasStrsv_64, cublasDtrsv_64);
  const auto gemv = routine<T>(cublasSgemv_64, cublasDgemv_64);
  const T minus_one = -1, one = 1;
  const int64_t blocks = (n + kVectorRows - 1) / kVectorRows;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t block = transposed ? blocks - 1 - step : step;
    const int64_t begin = block * kVectorRows, end = std::min(n, begin + kVectorRows);
    cublas_check(trsv(handle, CUBLAS_FILL_MODE_UPPER, op, CUBLAS_DIAG_NON_UNIT, end - begin,
                      l + begin * n + begin, n, b + begin, 1),
                 "trsv");
    // The rows left: those above the block, by all its columns; those below, by L' right of it.
    const int64_t left = transposed ? begin : n - end;
    if (left == 0) continue;
    const int64_t rows = transposed ? left : end - begin, cols = transposed ? end - begin : left;
    cublas_check(
        gemv(handle, op, rows, cols, &minus_one, transposed ? l + begin * n : l + end * n + begin,
             n, b + begin, 1, &one, transposed ? b : b + end, 1),
        "gemv");
  }
}

/// Row-major L x = b is, columns first, x' L' = b': the upper triangle from the right. With numbers
/// of 64 bits: from 46,341 rows on l has 2^31 elements.
template <class T>
void cuda_solve(bool transposed, const Tensor& l, const Tensor& b) {
  const int64_t n = b.size(0), k = b.size(1);
  const cublasHandle_t handle = cublas_handle(b.device(), b.dtype());
  if (k == 1) return cuda_solve_vector(transposed, handle, n, l.data<T>(), b.data<T>());
  const auto trsm = routine<T>(cublasStrsm_64, cublasDtrsm_64);
  const T one = 1;
  cublas_check(trsm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER,
                    transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, k, n, &one,
                    l.data<T>(), n, b.data<T>(), k),
               "trsm");
}

#endif

void solve(const char* tag, bool transposed, const Tensor& l, const Tensor& b) {
  check<ShapeError>(
      l.rank() == 2 && l.size(0) == l.size(1) && l.size(0) <= std::numeric_limits<int>::max(), tag,
      "got l {}, wanted [n, n] of fewer than 2^31 rows", l.shape());
  check_same_kind(tag, "l", l, "b", b);
  check<ShapeError>(
      b.rank() == 2 && b.size(0) == l.size(0) && b.size(1) <= std::numeric_limits<int>::max(), tag,
      "got b {}, wanted [{}, k]", b.shape(), l.size(0));
  if (b.elements() == 0) return;
  dispatch(b.dtype(), [&](auto t) {
    using T = decltype(t);
#ifdef KEEL_WITH_CUDA
    if (b.device().is_cuda()) return cuda_solve<T>(transposed, l, b);
#endif
    cpu_solve(transposed, b.size(0), b.size(1), l.data<T>(), b.data<T>());
  });
}

}  // namespace

void solve_lower(const Tensor& l, const Tensor& b) { solve("solve_lower", false, l, b); }
void solve_lower_transposed(const Tensor& l, const Tensor& b) {
  solve("solve_lower_transposed", true, l, b);
}

}  // namespace keel
