// CUDA behind one door: included by .cu files only; nearly empty in a build without CUDA.
#pragma once

#include "device.h"

// Whether the code of a GPU's threads is compiled: by nvcc, or for tests that emulate GPUs.
#if defined(__CUDACC__) || defined(KEEL_EMULATED_CUDA)
#define KEEL_DEVICE_CODE
#endif

#ifdef KEEL_WITH_CUDA
#include <cuda_runtime.h>  // of the toolkit, or of tests/emulated_cuda

#include <map>
#include <mutex>
#include <utility>

namespace keel {

/// Every runtime call goes through here: throws DeviceError with CUDA's own words.
void cuda_check(cudaError_t status, const char* what);

inline cudaStream_t stream_of(Device device) {
  return static_cast<cudaStream_t>(current_stream(device));
}

/// In order with the device's current stream, for which it waits: `from` may be changed at once.
inline void copy_to_device(Device device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(device)),
             "cudaMemcpyAsync");
  synchronize(device);
}

#ifdef KEEL_DEVICE_CODE

/// The most shared memory that each kernel was launched with, by device: its limit there, which all
/// threads share, and nobody lowers below what another is about to launch with.
struct SharedLimits {
  std::mutex mutex;
  std::map<std::pair<int, const void*>, int> bytes;
  static SharedLimits& all() {
    static SharedLimits& limits = *new SharedLimits();
    return limits;
  }
};

template <class Kernel>
void raise_shared_limit(Device device, const char* what, Kernel* kernel, int shared_bytes) {
  constexpr int kAlwaysAllowed = 48 * 1024;
  SharedLimits& limits = SharedLimits::all();
  const std::lock_guard lock(limits.mutex);
  int& most = limits.bytes[{device.index(), reinterpret_cast<const void*>(kernel)}];
  if (shared_bytes <= most) return;
  if (shared_bytes > kAlwaysAllowed)
    cuda_check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        what);
  // As many blocks as fit: how much of the cache becomes shared memory is the driver's guess else.
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             what);
  most = shared_bytes;
}

/// A launch of `kernel` whose blocks have so many bytes of shared memory, named in the launch, on
/// the device's current stream; `what` is for errors.
template <class... Parameters, class... Arguments>
void launch_kernel_shared(Device device, const char* what, void (*kernel)(Parameters...),
                          std::int64_t blocks, int threads, int shared_bytes,
                          const Arguments&... arguments) {
  check(blocks < (std::int64_t{1} << 31), what, "got {} blocks, wanted less than 2^31", blocks);
  if (device.is_cuda()) cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  constexpr int kMuch = 16 * 1024;
  if (shared_bytes > kMuch) raise_shared_limit(device, what, kernel, shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim.x = static_cast<unsigned>(blocks);
  config.blockDim.x = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream_of(device);
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

/// kernel<<<blocks, threads>>>(arguments...).
template <class... Parameters, class... Arguments>
void launch_kernel(Device device, const char* what, void (*kernel)(Parameters...),
                   std::int64_t blocks, int threads, const Arguments&... arguments) {
  launch_kernel_shared(device, what, kernel, blocks, threads, 0, arguments...);
}

#endif

}  // namespace keel
#endif

namespace keel {

/// Whether launches for this device go to launch_kernel. An emulated GPU takes the CPU's too, if a
/// test asks for it.
inline bool runs_device_code(Device device) {
#ifdef KEEL_EMULATED_CUDA
  return device.is_cuda() || emulated::takes_cpu_tensors();
#else
  return device.is_cuda();
#endif
}

}  // namespace keel
