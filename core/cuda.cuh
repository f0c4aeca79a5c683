// CUDA behind one door: included by .cu files only; empty in a build without CUDA.
#pragma once

#ifdef KEEL_WITH_CUDA
#include <cuda_runtime.h>

#include "device.h"

namespace keel {

/// Every runtime call goes through here: throws DeviceError with CUDA's own words.
void cuda_check(cudaError_t status, const char* what);

inline cudaStream_t stream_of(Device device) {
  return static_cast<cudaStream_t>(current_stream(device));
}

}  // namespace keel
#endif
