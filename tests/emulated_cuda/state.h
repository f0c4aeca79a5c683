// What driver.cpp and launches.cpp share.
#pragma once

#include "cuda_runtime.h"

namespace keel::emulated {

/// Remembers an error as the thread's last one.
cudaError_t result(cudaError_t);
bool known(Stream*);
/// Whether it is the stream of tensors on the CPU.
bool at_once(Stream*);

}  // namespace keel::emulated
