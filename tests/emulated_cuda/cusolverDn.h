// The part of cuSOLVER that keel uses, by the CPU's LAPACK.
#pragma once

#include "cublas_v2.h"

namespace keel::emulated {

struct SolverParams {};
using cusolverDnHandle_t = BlasHandle*;
using cusolverDnParams_t = SolverParams*;

enum cusolverStatus_t {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6
};
enum cusolverEigMode_t { CUSOLVER_EIG_MODE_VECTOR = 1 };

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t*);
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t*);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t);

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cublasFillMode_t, std::int64_t n, cudaDataType,
                                             const void* a, std::int64_t lda, cudaDataType,
                                             std::size_t* device_bytes, std::size_t* host_bytes);
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t,
                                  std::int64_t n, cudaDataType, void* a, std::int64_t lda,
                                  cudaDataType, void* on_device, std::size_t device_bytes,
                                  void* on_host, std::size_t host_bytes, int* info);

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cusolverEigMode_t, cublasFillMode_t, std::int64_t n,
                                             cudaDataType, const void* a, std::int64_t lda,
                                             cudaDataType, const void* w, cudaDataType,
                                             std::size_t* device_bytes, std::size_t* host_bytes);
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                  cublasFillMode_t, std::int64_t n, cudaDataType, void* a,
                                  std::int64_t lda, cudaDataType, void* w, cudaDataType,
                                  void* on_device, std::size_t device_bytes, void* on_host,
                                  std::size_t host_bytes, int* info);

}  // namespace keel::emulated
