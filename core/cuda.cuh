// CUDA behind one door: included by .cu files only; nearly empty in a build without CUDA.
#pragma once

// Whether the code of a GPU's threads is compiled: by nvcc, or for a test that emulates them.
#if defined(__CUDACC__) || defined(KEEL_EMULATED_CUDA_HEADER)
#define KEEL_DEVICE_CODE
#endif

#ifdef KEEL_WITH_CUDA
#include <cuda_runtime.h>

#include "device.h"

namespace keel {

/// Every runtime call goes through here: throws DeviceError with CUDA's own words.
void cuda_check(cudaError_t status, const char* what);

inline cudaStream_t stream_of(Device device) {
  return static_cast<cudaStream_t>(current_stream(device));
}

/// In order with the device's current stream; `from` may be changed at once.
inline void copy_to_device(Device device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(device)),
             "cudaMemcpyAsync");
}

#ifdef __CUDACC__
/// kernel<<<blocks, threads>>>(arguments...) on the device's current stream; `what` is for errors.
template <class... Parameters, class... Arguments>
void launch_kernel(Device device, const char* what, void (*kernel)(Parameters...),
                   std::int64_t blocks, int threads, const Arguments&... arguments) {
  check(blocks < (std::int64_t{1} << 31), what, "got {} blocks, wanted less than 2^31", blocks);
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream_of(device)>>>(
      arguments...);
  cuda_check(cudaGetLastError(), what);
}
#endif

}  // namespace keel
#endif

#ifdef KEEL_EMULATED_CUDA_HEADER
#include KEEL_EMULATED_CUDA_HEADER
#else
#include "device.h"

namespace keel {
/// Whether launches for this device go to launch_kernel.
inline bool runs_device_code(Device device) { return device.is_cuda(); }
}  // namespace keel
#endif
