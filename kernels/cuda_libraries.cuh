// Handles of cuBLAS and cuSOLVER: one a thread and GPU, following the thread's stream. Included by
// .cu files only; empty in a build without CUDA.
#pragma once

#ifdef KEEL_WITH_CUDA
#include <cublas_v2.h>
#include <cusolverDn.h>

#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "../core/cuda.cuh"
#include "../core/tensor.h"

namespace keel {

/// A library's routine for T: of float32, or of float64.
template <class T, class Single, class Twice>
constexpr auto routine(Single single, Twice twice) {
  if constexpr (std::is_same_v<T, float>)
    return single;
  else
    return twice;
}

inline void cublas_check(cublasStatus_t status, const char* what) {
  check<DeviceError>(status == CUBLAS_STATUS_SUCCESS, "cublas", "{} failed: {}", what,
                     cublasGetStatusString(status));
}

inline void cusolver_check(cusolverStatus_t status, const char* what) {
  check<DeviceError>(status == CUSOLVER_STATUS_SUCCESS, "cusolver", "{} failed with status {}",
                     what, static_cast<int>(status));
}

/// call(), and once more where it fails: libraries have memory of their own, which blocks that wait
/// in keel's pool may have taken.
template <class F>
auto with_room(Device device, F call) {
  const auto status = call();
  if (status == decltype(status){}) return status;  // 0: success
  trim_memory(device);
  return call();
}

/// This thread's Handle for a GPU. What a thread leaves the next one takes, as making one is slow
/// and takes memory of the card; none is ever destroyed, as a recorded graph may name what it
/// holds.
template <class Handle>
Handle& handle_of_thread(Device device) {
  struct Idle {
    std::mutex mutex;
    std::multimap<int, std::unique_ptr<Handle>> handles;  // by GPU
  };
  static Idle& idle = *new Idle();
  struct Mine {
    std::map<int, std::unique_ptr<Handle>> handles;
    ~Mine() {
      const std::lock_guard lock(idle.mutex);
      for (auto& [gpu, handle] : handles) idle.handles.emplace(gpu, std::move(handle));
    }
  };
  thread_local Mine mine;
  std::unique_ptr<Handle>& handle = mine.handles[device.index()];
  if (!handle) {
    const std::lock_guard lock(idle.mutex);
    if (auto left = idle.handles.extract(device.index())) handle = std::move(left.mapped());
  }
  if (!handle) handle = std::make_unique<Handle>();
  return *handle;
}

// With a workspace of its own: products recorded into a CUDA graph must not allocate. It follows
// the thread from stream to stream, which StreamScope makes safe by waiting. Products in float32
// are pedantic: no TF32, whatever the environment asks for. In float64 that would only leave tensor
// cores unused, which are as exact there.
inline cublasHandle_t cublas_handle(Device device, DType dtype) {
  struct Handle {
    cublasHandle_t handle = nullptr;
    Storage workspace;
  };
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // what cuBLAS advises for Hopper
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  Handle& entry = handle_of_thread<Handle>(device);
  if (!entry.workspace) {
    if (!entry.handle)
      cublas_check(with_room(device, [&] { return cublasCreate(&entry.handle); }), "cublasCreate");
    entry.workspace = Storage(device, kWorkspace);
  }
  const auto mode = dtype == DType::f32 ? CUBLAS_PEDANTIC_MATH : CUBLAS_DEFAULT_MATH;
  cublas_check(cublasSetMathMode(entry.handle, mode), "cublasSetMathMode");
  // Each time: another stream may have the address of one that is gone. It takes the workspace
  // away.
  cublas_check(cublasSetStream(entry.handle, stream_of(device)), "cublasSetStream");
  cublas_check(cublasSetWorkspace(entry.handle, entry.workspace.data(), kWorkspace),
               "cublasSetWorkspace");
  return entry.handle;
}

struct SolverHandle {
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
};

inline SolverHandle solver_cusolver(Device device) {
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  SolverHandle& solver = handle_of_thread<SolverHandle>(device);
  if (!solver.params) {
    if (!solver.handle)
      cusolver_check(with_room(device, [&] { return cusolverDnCreate(&solver.handle); }),
                     "cusolverDnCreate");
    cusolver_check(cusolverDnCreateParams(&solver.params), "cusolverDnCreateParams");
  }
  cusolver_check(cusolverDnSetStream(solver.handle, stream_of(device)), "cusolverDnSetStream");
  return solver;
}

inline cudaDataType cuda_type_of(DType dtype) {
  return dtype == DType::f32 ? CUDA_R_32F : CUDA_R_64F;
}

/// What a cuSOLVER routine works in, from the pools, and the integer it reports by. The host part
/// is in use until the stream is done: who reads the integer has waited for that, and who does not,
/// as there was an error, waits when this goes.
struct SolverWorkspace {
  Storage on_device, on_host, info;
  std::size_t device_bytes, host_bytes;

  SolverWorkspace(Device device, std::size_t device_bytes, std::size_t host_bytes)
      : on_device(device, device_bytes),
        on_host(Device::cpu(), host_bytes),
        info(device, sizeof(int)),
        device_bytes(device_bytes),
        host_bytes(host_bytes) {}
  SolverWorkspace(const SolverWorkspace&) = delete;
  SolverWorkspace& operator=(const SolverWorkspace&) = delete;
  ~SolverWorkspace() {
    try {
      synchronize(info.device());
    } catch (const Error&) {
      // Whoever waits for the device next hears of it.
    }
  }

  int read_info(Device device) const {
    int value = 0;
    cuda_check(cudaMemcpyAsync(&value, info.data(), sizeof value, cudaMemcpyDeviceToHost,
                               stream_of(device)),
               "cudaMemcpyAsync");
    synchronize(device);
    return value;
  }
};

}  // namespace keel
#endif
