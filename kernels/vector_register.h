// A vector register of the CPU that this is compiled for, as the compiler's own vector types: one
// text serves every processor.
#pragma once

namespace keel {

#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;  // 32 of them
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;  // 16
#else
inline constexpr int kRegisterBytes = 16;
#endif

/// Whether registers are wide, and multiply and add in one instruction.
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
inline constexpr bool kFusedVectors = true;
#else
inline constexpr bool kFusedVectors = false;
#endif

template <class T>
struct Vector {
  static constexpr int kLanes = kRegisterBytes / static_cast<int>(sizeof(T));
  typedef T Register __attribute__((vector_size(kRegisterBytes)));
  typedef T Unaligned __attribute__((vector_size(kRegisterBytes), aligned(alignof(T))));
  static Register load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Register value) { *reinterpret_cast<Unaligned*>(to) = value; }
};

}  // namespace keel
