// Sixteen bytes, and how a GPU moves them: stores in one access each, and copies to shared memory
// that arrive while something else is computed. On a CPU, where tests run the same code thread
// after thread, plain assignments.
#pragma once

#include "group.h"

#ifdef KEEL_EMULATED_CUDA
#include <cuda_runtime.h>  // tests/emulated_cuda
#endif

namespace keel {

/// Sixteen bytes: what one load or store moves.
template <class T>
struct alignas(16) Wide {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  T v[kCount];
};

using Quad = Wide<float>;

KEEL_HD inline Quad& quad(float* at) { return *reinterpret_cast<Quad*>(at); }
KEEL_HD inline const Quad& quad(const float* at) { return *reinterpret_cast<const Quad*>(at); }

/// Stores a quad in shared memory, in one access: nvcc makes four of an assignment, each of which
/// meets its neighbours' in the same banks.
KEEL_HD inline void put_shared(float* at, const Quad& q) {
#ifdef __CUDA_ARCH__
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(q.v[0]), "f"(q.v[1]),
               "f"(q.v[2]), "f"(q.v[3])
               : "memory");
#else
  quad(at) = q;
#endif
}

/// Stores sixteen bytes in a GPU's global memory, in one access: nvcc makes several of an
/// assignment, each of which asks for its sectors anew.
KEEL_HD inline void put_global(float* at, const Wide<float>& run) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(run.v[0]), "f"(run.v[1]),
               "f"(run.v[2]), "f"(run.v[3])
               : "memory");
#else
  *reinterpret_cast<Wide<float>*>(at) = run;
#endif
}
KEEL_HD inline void put_global(double* at, const Wide<double>& run) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v2.f64 [%0], {%1, %2};" ::"l"(at), "d"(run.v[0]), "d"(run.v[1])
               : "memory");
#else
  *reinterpret_cast<Wide<double>*>(at) = run;
#endif
}

/// Copies sixteen bytes to shared memory; on a GPU they arrive by wait_for_copies.
template <class T>
KEEL_HD void copy_async(T* shared, const T* global) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#elif defined(KEEL_EMULATED_CUDA)
  emulated::copy_async(shared, global, 16);
#else
  *reinterpret_cast<Wide<T>*>(shared) = *reinterpret_cast<const Wide<T>*>(global);
#endif
}

/// Copies four bytes to shared memory; on a GPU they arrive by wait_for_copies.
KEEL_HD inline void copy_word_async(float* shared, const float* global) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global) : "memory");
#elif defined(KEEL_EMULATED_CUDA)
  emulated::copy_async(shared, global, 4);
#else
  *shared = *global;
#endif
}

KEEL_HD inline void commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined(KEEL_EMULATED_CUDA)
  emulated::commit_copies();
#endif
}

/// All but the youngest kYoungest commits of this thread have arrived.
template <int kYoungest>
KEEL_HD void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kYoungest) : "memory");
#elif defined(KEEL_EMULATED_CUDA)
  emulated::wait_for_copies(kYoungest);
#endif
}

}  // namespace keel
