#include "eigen.h"

#include <lapacke.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "cuda_libraries.cuh"

namespace keel {
namespace {

using std::int64_t;

/// Row-major and lower is column-major and upper, and LAPACK's columns of V are our rows.
template <class T>
int cpu_syevd(int n, T* a, T* w) {
  const auto call = [&](T* work, int work_size, lapack_int* integers, int integers_size) {
    if constexpr (std::is_same_v<T, float>)
      return LAPACKE_ssyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, w, work, work_size, integers,
                                 integers_size);
    else
      return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, w, work, work_size, integers,
                                 integers_size);
  };
  // The least that syevd's documentation allows, and some for blocked code.
  const int64_t size = 1 + 6 * int64_t{n} + 2 * int64_t{n} * n + 64 * int64_t{n};
  const int work_size = static_cast<int>(size), integers_size = 3 + 5 * n;
  const Storage work(Device::cpu(), size * sizeof(T));
  const Storage integers(Device::cpu(), integers_size * sizeof(lapack_int));
  return call(static_cast<T*>(work.data()), work_size, static_cast<lapack_int*>(integers.data()),
              integers_size);
}

bool all_finite(const Tensor& x) {
  for (double value : x.to(DType::f64).to_vector<double>())
    if (!std::isfinite(value)) return false;
  return true;
}

#ifdef KEEL_WITH_CUDA

template <class T>
int cuda_syevd(const Tensor& a, const Tensor& w) {
  const Device device = a.device();
  const SolverHandle solver = solver_cusolver(device);
  const cudaDataType type = cuda_type_of(a.dtype());
  const int64_t n = a.size(0);
  std::size_t device_bytes = 0, host_bytes = 0;
  const cusolverStatus_t status = cusolverDnXsyevd_bufferSize(
      solver.handle, solver.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, type,
      a.data<T>(), n, type, w.data<T>(), type, &device_bytes, &host_bytes);
  // Of CUDA 12.4 it is known (NVIDIA/CUDALibrarySamples, issue 246).
  check<DeviceError>(status == CUSOLVER_STATUS_SUCCESS || n < 20'000, "symmetric_eigen",
                     "got {} rows, wanted fewer: this cuSOLVER may end at 25,000; try --device cpu",
                     n);
  cusolver_check(status, "cusolverDnXsyevd_bufferSize");
  const SolverWorkspace work(device, device_bytes, host_bytes);
  const cusolverStatus_t done = cusolverDnXsyevd(
      solver.handle, solver.params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, type,
      a.data<T>(), n, type, w.data<T>(), type, work.on_device.data(), device_bytes,
      work.on_host.data(), host_bytes, static_cast<int*>(work.info.data()));
  if (done != CUSOLVER_STATUS_SUCCESS && !all_finite(a)) {
    fill(w, std::numeric_limits<double>::quiet_NaN());  // what it says of a NaN is its version's
    return 0;
  }
  cusolver_check(done, "cusolverDnXsyevd");
  return work.read_info(device);
}

#endif

}  // namespace

Tensor symmetric_eigen(const Tensor& a) {
  check<ShapeError>(a.rank() == 2 && a.size(0) == a.size(1), "symmetric_eigen",
                    "got {}, wanted [n, n]", a.shape());
  const int64_t n = a.size(0);
  check<ShapeError>(n <= 32'732 || a.device().is_cuda(), "symmetric_eigen",
                    "got {} rows, wanted at most 32,732: LAPACK counts its workspace in 32 bits",
                    n);
  const Tensor w = Tensor::empty({n}, a.dtype(), a.device());
  if (n == 0) return w;
  const int info = dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
#ifdef KEEL_WITH_CUDA
    if (a.device().is_cuda()) return cuda_syevd<T>(a, w);
#endif
    return cpu_syevd(static_cast<int>(n), a.data<T>(), w.data<T>());
  });
  const bool finite = all_finite(w) && (info == 0 || all_finite(a));
  check(info == 0 && finite, "symmetric_eigen", "got a [{}, {}] {}", n, n,
        finite ? "whose iteration did not converge" : "that is not finite");
  return w;
}

}  // namespace keel
