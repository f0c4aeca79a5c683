#include "solve_lower.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuda_libraries.cuh"
#include "diagonal_inverses.h"
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

/// into [., k] = alpha op(m) b + beta into, m [rows, cols] of row stride `stride`. Columns first, m
/// is its transpose. With numbers of 64 bits: from 46,341 rows on a triangle has 2^31 elements.
template <class T>
void multiply(cublasHandle_t handle, bool transposed, int64_t rows, int64_t cols, int64_t k,
              T alpha, const T* m, int64_t stride, const T* b, T beta, T* into) {
  const auto gemv = routine<T>(cublasSgemv_64, cublasDgemv_64);
  const auto gemm = routine<T>(cublasSgemm_64, cublasDgemm_64);
  if (k == 1)
    cublas_check(gemv(handle, transposed ? CUBLAS_OP_N : CUBLAS_OP_T, cols, rows, &alpha, m, stride,
                      b, 1, &beta, into, 1),
                 "gemv");
  else
    cublas_check(gemm(handle, CUBLAS_OP_N, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, k,
                      transposed ? cols : rows, transposed ? rows : cols, &alpha, b, k, m, stride,
                      &beta, into, k),
                 "gemm");
}

/// Block after block: its rows of the solution, by the inverse; then what they contribute to the
/// rows that are left. Products with matrices keep all of a GPU busy, and read the triangle once.
template <class T>
void cuda_solve(bool transposed, const Tensor& l, const Tensor& inverses, const Tensor& b) {
  const int64_t n = b.size(0), k = b.size(1), side = inverses.size(1), blocks = inverses.size(0);
  const cublasHandle_t handle = cublas_handle(b.device(), b.dtype());
  const Tensor solution = Tensor::empty(b.shape(), b.dtype(), b.device());
  const T *triangle = l.data<T>(), *inverse = inverses.data<T>();
  T *left = b.data<T>(), *x = solution.data<T>();
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t block = transposed ? blocks - 1 - step : step;
    const int64_t begin = block * side, end = std::min(n, begin + side), rows = end - begin;
    multiply<T>(handle, transposed, rows, rows, k, 1, inverse + begin * side, side,
                left + begin * k, 0, x + begin * k);
    if (transposed && begin > 0)  // the rows above, by L' left of the block
      multiply<T>(handle, true, rows, begin, k, -1, triangle + begin * n, n, x + begin * k, 1,
                  left);
    if (!transposed && end < n)
      multiply<T>(handle, false, n - end, rows, k, -1, triangle + end * n + begin, n, x + begin * k,
                  1, left + end * k);
  }
  copy(b, solution);
}

#endif

void solve(const char* tag, bool transposed, const Tensor& l, const Tensor& b,
           [[maybe_unused]] const Tensor& inverses) {
  check<ShapeError>(
      l.rank() == 2 && l.size(0) == l.size(1) && l.size(0) <= std::numeric_limits<int>::max(), tag,
      "got l {}, wanted [n, n] of fewer than 2^31 rows", l.shape());
  check_same_kind(tag, "l", l, "b", b);
  check<ShapeError>(
      b.rank() == 2 && b.size(0) == l.size(0) && b.size(1) <= std::numeric_limits<int>::max(), tag,
      "got b {}, wanted [{}, k]", b.shape(), l.size(0));
  if (inverses.defined()) {
    check_same_kind(tag, "l", l, "inverses", inverses);
    const int64_t n = l.size(0), side = diagonal_block(n);
    const Shape wanted{(n + side - 1) / side, side, side};
    check<ShapeError>(inverses.shape() == wanted, tag, "got inverses {}, wanted {}",
                      inverses.shape(), wanted);
  }
  if (b.elements() == 0) return;
  dispatch(b.dtype(), [&](auto t) {
    using T = decltype(t);
#ifdef KEEL_WITH_CUDA
    if (b.device().is_cuda())
      return cuda_solve<T>(transposed, l, inverses.defined() ? inverses : invert_diagonal_blocks(l),
                           b);
#endif
    cpu_solve(transposed, b.size(0), b.size(1), l.data<T>(), b.data<T>());
  });
}

}  // namespace

void solve_lower(const Tensor& l, const Tensor& b, const Tensor& inverses) {
  solve("solve_lower", false, l, b, inverses);
}
void solve_lower_transposed(const Tensor& l, const Tensor& b, const Tensor& inverses) {
  solve("solve_lower_transposed", true, l, b, inverses);
}

}  // namespace keel
