#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "cusolverDn.h"

namespace keel::emulated {
namespace {

CBLAS_TRANSPOSE of(cublasOperation_t op) { return op == CUBLAS_OP_T ? CblasTrans : CblasNoTrans; }
CBLAS_UPLO of(cublasFillMode_t half) {
  return half == CUBLAS_FILL_MODE_UPPER ? CblasUpper : CblasLower;
}
CBLAS_SIDE of(cublasSideMode_t side) { return side == CUBLAS_SIDE_RIGHT ? CblasRight : CblasLeft; }

// What a library's call must find before its work can be queued. A product that is recorded needs a
// workspace that was set: cuBLAS would allocate one.
cublasStatus_t queue(BlasHandle* handle, bool valid, Work work) {
  const std::lock_guard lock(driver_mutex());
  if (!handle || !handle->stream) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->stream->device != current_device() ||
      (handle->stream->recorded && !handle->has_workspace))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  enqueue(*handle->stream, std::move(work));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t gemm(BlasHandle* handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                    int n, int k, const T* alpha, const T* a, int lda, long long stride_a,
                    const T* b, int ldb, long long stride_b, const T* beta, T* c, int ldc,
                    long long stride_c, int count) {
  const bool valid = m >= 0 && n >= 0 && k >= 0 && count >= 0 && ldc >= std::max(1, m) &&
                     lda >= std::max(1, op_a == CUBLAS_OP_N ? m : k) &&
                     ldb >= std::max(1, op_b == CUBLAS_OP_N ? k : n);
  return queue(handle, valid, [=, alpha = *alpha, beta = *beta] {
    for (long long s = 0; s < count; ++s) {
      const T *from_a = a + s * stride_a, *from_b = b + s * stride_b;
      T* into = c + s * stride_c;
      if constexpr (std::is_same_v<T, float>)
        cblas_sgemm(CblasColMajor, of(op_a), of(op_b), m, n, k, alpha, from_a, lda, from_b, ldb,
                    beta, into, ldc);
      else
        cblas_dgemm(CblasColMajor, of(op_a), of(op_b), m, n, k, alpha, from_a, lda, from_b, ldb,
                    beta, into, ldc);
    }
  });
}

template <class Call>
void with_type(cudaDataType type, Call call) {
  type == CUDA_R_32F ? call(float()) : call(double());
}

char half_of(cublasFillMode_t half) { return half == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }

// Both kinds of workspace, of odd sizes; all of it is overwritten, as a solver may.
constexpr std::size_t kOnDevice = 1040, kOnHost = 528;

cusolverStatus_t ask(std::size_t* device_bytes, std::size_t* host_bytes) {
  *device_bytes = kOnDevice;
  *host_bytes = kOnHost;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t solve(BlasHandle* handle, bool valid, void* on_device, std::size_t device_bytes,
                       void* on_host, std::size_t host_bytes, Work work) {
  const std::lock_guard lock(driver_mutex());
  if (!handle || !handle->stream || !valid || !on_device || !on_host || device_bytes < kOnDevice ||
      host_bytes < kOnHost || handle->stream->device != current_device())
    return CUSOLVER_STATUS_INVALID_VALUE;
  enqueue(*handle->stream, [=] {
    std::memset(on_device, 0x5a, device_bytes);
    std::memset(on_host, 0x5a, host_bytes);
    work();
  });
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "emulated cuBLAS refuses";
}
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return *handle = new BlasHandle(), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->has_workspace = false;  // as documented: the default one again
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* data, std::size_t bytes) {
  const std::lock_guard lock(driver_mutex());
  if (!handle->stream || !memory_of(handle->stream->device).holds(data, bytes) ||
      reinterpret_cast<std::uintptr_t>(data) % 256 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->has_workspace = true;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int count) {
  return gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
              stride_c, count);
}
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* alpha, const float* a, int lda,
                           const float* b, int ldb, const float* beta, float* c, int ldc) {
  return gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const double* alpha, const double* a, int lda,
                           const double* b, int ldb, const double* beta, double* c, int ldc) {
  return gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  if (type_a != CUDA_R_32F || type_b != type_a || type_c != type_a)
    return CUBLAS_STATUS_INVALID_VALUE;
  return gemm(handle, op_a, op_b, m, n, k, static_cast<const float*>(alpha),
              static_cast<const float*>(a), lda, 0, static_cast<const float*>(b), ldb, 0,
              static_cast<const float*>(beta), static_cast<float*>(c), ldc, 0, 1);
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const double* alpha, const double* a, int lda,
                                         long long stride_a, const double* b, int ldb,
                                         long long stride_b, const double* beta, double* c, int ldc,
                                         long long stride_c, int count) {
  return gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
              stride_c, count);
}
#define KEEL_EMULATED_BLAS_64(T, Gemm, Gemv, gemv)                                                 \
  cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,       \
                      std::int64_t m, std::int64_t n, std::int64_t k, const T* alpha, const T* a,  \
                      std::int64_t lda, const T* b, std::int64_t ldb, const T* beta, T* c,         \
                      std::int64_t ldc) {                                                          \
    return gemm(handle, op_a, op_b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), \
                alpha, a, static_cast<int>(lda), 0, b, static_cast<int>(ldb), 0, beta, c,          \
                static_cast<int>(ldc), 0, 1);                                                      \
  }                                                                                                \
  cublasStatus_t Gemv(cublasHandle_t handle, cublasOperation_t op, std::int64_t m, std::int64_t n, \
                      const T* alpha, const T* a, std::int64_t lda, const T* x,                    \
                      std::int64_t step_x, const T* beta, T* y, std::int64_t step_y) {             \
    const bool valid =                                                                             \
        m >= 0 && n >= 0 && lda >= std::max<std::int64_t>(1, m) && step_x != 0 && step_y != 0;     \
    return queue(handle, valid, [=, alpha = *alpha, beta = *beta] {                                \
      gemv(CblasColMajor, of(op), m, n, alpha, a, lda, x, step_x, beta, y, step_y);                \
    });                                                                                            \
  }
KEEL_EMULATED_BLAS_64(float, cublasSgemm_64, cublasSgemv_64, cblas_sgemv)
KEEL_EMULATED_BLAS_64(double, cublasDgemm_64, cublasDgemv_64, cblas_dgemv)
#undef KEEL_EMULATED_BLAS_64

cublasStatus_t cublasDsymm_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t half,
                              std::int64_t m, std::int64_t n, const double* alpha, const double* a,
                              std::int64_t lda, const double* b, std::int64_t ldb,
                              const double* beta, double* c, std::int64_t ldc) {
  const bool valid = m >= 0 && n >= 0 && ldb >= std::max<std::int64_t>(1, m) &&
                     ldc >= std::max<std::int64_t>(1, m) &&
                     lda >= std::max<std::int64_t>(1, side == CUBLAS_SIDE_LEFT ? m : n);
  return queue(handle, valid, [=, alpha = *alpha, beta = *beta] {
    cblas_dsymm(CblasColMajor, of(side), of(half), m, n, alpha, a, lda, b, ldb, beta, c, ldc);
  });
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  return *handle = new BlasHandle(), CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
  return *params = new SolverParams(), CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cublasFillMode_t, std::int64_t, cudaDataType,
                                             const void*, std::int64_t, cudaDataType,
                                             std::size_t* device_bytes, std::size_t* host_bytes) {
  return ask(device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t,
                                  cublasFillMode_t half, std::int64_t n, cudaDataType type, void* a,
                                  std::int64_t lda, cudaDataType, void* on_device,
                                  std::size_t device_bytes, void* on_host, std::size_t host_bytes,
                                  int* info) {
  return solve(handle, n >= 0 && lda >= n, on_device, device_bytes, on_host, host_bytes, [=] {
    const int size = static_cast<int>(n), stride = static_cast<int>(lda);
    with_type(type, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, float>)
        *info =
            LAPACKE_spotrf_work(LAPACK_COL_MAJOR, half_of(half), size, static_cast<T*>(a), stride);
      else
        *info =
            LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, half_of(half), size, static_cast<T*>(a), stride);
      // What is left of a factor that was given up is documented nowhere.
      if (*info > 0)
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t begin = half == CUBLAS_FILL_MODE_UPPER ? 0 : j;
          const std::int64_t end = half == CUBLAS_FILL_MODE_UPPER ? j + 1 : n;
          std::fill_n(static_cast<T*>(a) + j * lda + begin, end - begin,
                      std::numeric_limits<T>::quiet_NaN());
        }
    });
  });
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cusolverEigMode_t, cublasFillMode_t, std::int64_t,
                                             cudaDataType, const void*, std::int64_t, cudaDataType,
                                             const void*, cudaDataType, std::size_t* device_bytes,
                                             std::size_t* host_bytes) {
  return ask(device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                  cublasFillMode_t half, std::int64_t n, cudaDataType type, void* a,
                                  std::int64_t lda, cudaDataType, void* w, cudaDataType,
                                  void* on_device, std::size_t device_bytes, void* on_host,
                                  std::size_t host_bytes, int* info) {
  return solve(handle, n >= 0 && lda >= n, on_device, device_bytes, on_host, host_bytes, [=] {
    const int size = static_cast<int>(n), stride = static_cast<int>(lda);
    with_type(type, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, float>)
        *info = LAPACKE_ssyevd(LAPACK_COL_MAJOR, 'V', half_of(half), size, static_cast<T*>(a),
                               stride, static_cast<T*>(w));
      else
        *info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', half_of(half), size, static_cast<T*>(a),
                               stride, static_cast<T*>(w));
    });
  });
}

}  // namespace keel::emulated
