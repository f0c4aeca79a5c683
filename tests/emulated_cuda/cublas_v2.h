// The part of cuBLAS that keel uses, by the CPU's BLAS: matrices are columns first, as there.
#pragma once

#include "cuda_runtime.h"

namespace keel::emulated {

struct BlasHandle {
  Stream* stream = nullptr;
  bool has_workspace = false;
};
using cublasHandle_t = BlasHandle*;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_PEDANTIC_MATH = 2 };

const char* cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasCreate(cublasHandle_t*);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t);

#define KEEL_EMULATED_BLAS(T, Gemm, Gemv)                                                        \
  cublasStatus_t Gemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, \
                      const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,   \
                      T* c, int ldc);                                                            \
  cublasStatus_t Gemm##_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t m, \
                           std::int64_t n, std::int64_t k, const T* alpha, const T* a,           \
                           std::int64_t lda, const T* b, std::int64_t ldb, const T* beta, T* c,  \
                           std::int64_t ldc);                                                    \
  cublasStatus_t Gemm##StridedBatched(                                                           \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const T* alpha, \
      const T* a, int lda, long long stride_a, const T* b, int ldb, long long stride_b,          \
      const T* beta, T* c, int ldc, long long stride_c, int count);                              \
  cublasStatus_t Gemv(cublasHandle_t, cublasOperation_t, std::int64_t m, std::int64_t n,         \
                      const T* alpha, const T* a, std::int64_t lda, const T* x,                  \
                      std::int64_t step_x, const T* beta, T* y, std::int64_t step_y);
KEEL_EMULATED_BLAS(float, cublasSgemm, cublasSgemv_64)
KEEL_EMULATED_BLAS(double, cublasDgemm, cublasDgemv_64)
#undef KEEL_EMULATED_BLAS

/// Of float32 alone, whatever the compute type asks for.
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                            const void* b, cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t, cublasGemmAlgo_t);

cublasStatus_t cublasDsymm_64(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, std::int64_t m,
                              std::int64_t n, const double* alpha, const double* a,
                              std::int64_t lda, const double* b, std::int64_t ldb,
                              const double* beta, double* c, std::int64_t ldc);

}  // namespace keel::emulated
