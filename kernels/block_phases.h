// Kernels whose threads meet at barriers, without a barrier in their code: run(each) of a block
// hands `each` one phase after another, code of (the thread's registers, shared memory). A GPU's
// thread runs its own part and meets the others; a CPU runs a phase thread after thread.
#pragma once

#include "wide.h"

// KEEL_ROLLED: loops over outputs, of which most nets have one, and nvcc would write out four.
#ifdef __CUDA_ARCH__
#define KEEL_UNROLL _Pragma("unroll")
#define KEEL_ROLLED _Pragma("unroll 1")
#else
#define KEEL_UNROLL
#define KEEL_ROLLED
#endif

namespace keel {

/// A phase, what it copied to shared memory, and the barrier behind it.
template <class Thread>
struct OnGpu {
  Thread& thread;

  template <class Phase>
  KEEL_HD void operator()(Phase phase) const {
    phase(thread);
#if defined(__CUDA_ARCH__) || defined(KEEL_EMULATED_CUDA)
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
#endif
  }
};

}  // namespace keel
