#include "cholesky.h"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "cuda_libraries.cuh"
#include "triangle.h"

namespace keel {
namespace {

using std::int64_t;

/// A [rows, rows] becomes L, of row stride n. Row-major and lower is column-major and upper: LAPACK
/// is called in the second order.
template <class T>
int potrf(int64_t rows, int64_t n, T* a) {
  const int size = static_cast<int>(rows), stride = static_cast<int>(n);
  if constexpr (std::is_same_v<T, float>)
    return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'U', size, a, stride);
  else
    return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', size, a, stride);
}

/// b [rows, cols] becomes b L'^-1, with L [cols, cols]; all of row stride n.
template <class T>
void solve_panel(int64_t rows, int64_t cols, int64_t n, const T* l, T* b) {
  const int height = static_cast<int>(rows), width = static_cast<int>(cols);
  const int stride = static_cast<int>(n);
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, height, width, 1,
                l, stride, b, stride);
  else
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, height, width, 1,
                l, stride, b, stride);
}

/// c [rows, cols] -= a b' with a [rows, inner], b [cols, inner]; all of row stride n.
template <class T>
void subtract_rectangle(int64_t rows, int64_t cols, int64_t inner, int64_t n, const T* a,
                        const T* b, T* c) {
  const int height = static_cast<int>(rows), width = static_cast<int>(cols);
  const int depth = static_cast<int>(inner), stride = static_cast<int>(n);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, height, width, depth, -1, a, stride, b,
                stride, 1, c, stride);
  else
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, height, width, depth, -1, a, stride, b,
                stride, 1, c, stride);
}

/// The lower triangle of c [rows, rows] -= a a' with a [rows, inner]; both of row stride n.
template <class T>
void subtract_square(int64_t rows, int64_t inner, int64_t n, const T* a, T* c) {
  const int size = static_cast<int>(rows), depth = static_cast<int>(inner);
  const int stride = static_cast<int>(n);
  if constexpr (std::is_same_v<T, float>)
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, size, depth, -1, a, stride, 1, c, stride);
  else
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, size, depth, -1, a, stride, 1, c, stride);
}

/// Adds up multiplications, and tells what share of a factorisation's n^3 / 6 they are.
class CholeskyWork {
 public:
  CholeskyWork(int64_t n, const WorkProgress& progress)
      : all_(std::pow(static_cast<double>(n), 3) / 6), progress_(progress) {}
  void add(double multiplications) {
    done_ += multiplications;
    if (progress_) progress_(std::min(1.0, done_ / all_));
  }

 private:
  double all_, done_ = 0;
  const WorkProgress& progress_;
};

// Panel by panel, as LAPACK does it, so that whoever waits can be told how far it is; the rows that
// are left get the panel's share in chunks, each at most about a second's work on two cores.
template <class T>
int cpu_potrf(int64_t n, T* a, const WorkProgress& progress) {
  constexpr int64_t kPanel = 512, kChunk = 2048;
  CholeskyWork work(n, progress);
  for (int64_t begin = 0; begin < n; begin += kPanel) {
    const int64_t cols = std::min(kPanel, n - begin), end = begin + cols;
    const double width = static_cast<double>(cols);
    T* const panel = a + begin;  // columns begin .. end
    const int info = potrf(cols, n, panel + begin * n);
    if (info != 0) return info > 0 ? static_cast<int>(begin) + info : info;
    if (end < n) solve_panel(n - end, cols, n, panel + begin * n, panel + end * n);
    work.add(width * width * (width / 6 + static_cast<double>(n - end) / 2));
    for (int64_t row = end; row < n; row += kChunk) {
      const int64_t rows = std::min(kChunk, n - row);
      T* const left = panel + row * n;
      if (row > end)
        subtract_rectangle(rows, row - end, cols, n, left, panel + end * n, a + row * n + end);
      subtract_square(rows, cols, n, left, a + row * n + row);
      work.add(width * static_cast<double>(rows) *
               (static_cast<double>(row - end) + static_cast<double>(rows) / 2));
    }
  }
  return 0;
}

#ifdef KEEL_WITH_CUDA

// cuSOLVER factors its lower triangle, row-major the upper one, in 0.6 to 0.8 of the time that it
// takes for the other (an H100, 8192 and 40,132 rows): worth exchanging the two, there and back.
int cuda_potrf(const Tensor& a) {
  const Device device = a.device();
  const SolverHandle solver = solver_cusolver(device);
  const cudaDataType type = cuda_type_of(a.dtype());
  const int64_t n = a.size(0);
  void* data = dispatch(a.dtype(), [&](auto t) -> void* { return a.data<decltype(t)>(); });
  std::size_t device_bytes = 0, host_bytes = 0;
  cusolver_check(cusolverDnXpotrf_bufferSize(solver.handle, solver.params, CUBLAS_FILL_MODE_LOWER,
                                             n, type, data, n, type, &device_bytes, &host_bytes),
                 "cusolverDnXpotrf_bufferSize");
  const SolverWorkspace work(device, device_bytes, host_bytes);
  swap_triangles(a);
  cusolver_check(
      cusolverDnXpotrf(solver.handle, solver.params, CUBLAS_FILL_MODE_LOWER, n, type, data, n, type,
                       work.on_device.data(), device_bytes, work.on_host.data(), host_bytes,
                       static_cast<int*>(work.info.data())),
      "cusolverDnXpotrf");
  swap_triangles(a);
  return work.read_info(device);
}

#endif

void check_square(const char* tag, const Tensor& a) {
  check<ShapeError>(a.rank() == 2 && a.size(0) == a.size(1), tag, "got {}, wanted [n, n]",
                    a.shape());
  check<ShapeError>(a.size(0) <= std::numeric_limits<int>::max(), tag,
                    "got {} rows, wanted fewer than 2^31", a.size(0));
}

}  // namespace

std::optional<int64_t> cholesky(const Tensor& a, const WorkProgress& progress) {
  check_square("cholesky", a);
  if (a.elements() == 0) return {};
  const int info = dispatch(a.dtype(), [&](auto t) {
#ifdef KEEL_WITH_CUDA
    if (a.device().is_cuda()) return cuda_potrf(a);
#endif
    return cpu_potrf(a.size(0), a.data<decltype(t)>(), progress);
  });
  check(info >= 0, "cholesky", "LAPACK refuses its argument {}", -info);
  if (info > 0 && a.device().is_cuda()) return info - 1;  // of a then nothing is known
  // OpenBLAS lets NaN pass for a pivot: the diagonal tells, up to where it stopped.
  const std::vector<double> pivots = diagonal(a).to_vector<double>();
  const int64_t done = info > 0 ? info - 1 : a.size(0);
  for (int64_t i = 0; i < done; ++i)
    if (!std::isfinite(pivots[i])) return i;
  if (info > 0) return done;
  return {};
}

}  // namespace keel
