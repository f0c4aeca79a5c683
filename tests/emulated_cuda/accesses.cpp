// What -fsanitize=thread has every access of device code call, and of the host code beside it.
#include <cstddef>
#include <cstdint>

#include "accesses.h"
#include "races.h"
#include "traffic.h"

namespace {

using namespace keel::emulated;  // NOLINT

inline void touch(const void* at, std::size_t bytes, bool writes, const void* instruction) {
  if (!Accesses::watched) return;
  if (reinterpret_cast<std::uintptr_t>(at) - Accesses::stack < Accesses::kStack) return;
  Accesses::watched = false;  // what is instrumented may be called from here: std's templates
  Races::touch(at, bytes, writes);
  if (Traffic::counts()) Traffic::touch(at, bytes, writes, instruction);
  Accesses::watched = true;
}

}  // namespace

extern "C" {
#define KEEL_ACCESS(bytes)                                                                    \
  void __tsan_read##bytes(void* at) { touch(at, bytes, false, __builtin_return_address(0)); } \
  void __tsan_write##bytes(void* at) { touch(at, bytes, true, __builtin_return_address(0)); } \
  void __tsan_unaligned_read##bytes(void* at) {                                               \
    touch(at, bytes, false, __builtin_return_address(0));                                     \
  }                                                                                           \
  void __tsan_unaligned_write##bytes(void* at) {                                              \
    touch(at, bytes, true, __builtin_return_address(0));                                      \
  }
KEEL_ACCESS(1)
KEEL_ACCESS(2)
KEEL_ACCESS(4)
KEEL_ACCESS(8)
KEEL_ACCESS(16)
#undef KEEL_ACCESS
void __tsan_read_range(void* at, std::size_t bytes) {
  touch(at, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, std::size_t bytes) {
  touch(at, bytes, true, __builtin_return_address(0));
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_init() {}

// Atomics are the host's: they do what they did, and are not looked at.
#define KEEL_ATOMIC(bits)                                                                        \
  using Word##bits = std::uint##bits##_t;                                                        \
  Word##bits __tsan_atomic##bits##_load(const volatile Word##bits* at, int) {                    \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                \
  }                                                                                              \
  void __tsan_atomic##bits##_store(volatile Word##bits* at, Word##bits value, int) {             \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                               \
  }                                                                                              \
  Word##bits __tsan_atomic##bits##_exchange(volatile Word##bits* at, Word##bits value, int) {    \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                     \
  }                                                                                              \
  Word##bits __tsan_atomic##bits##_fetch_add(volatile Word##bits* at, Word##bits value, int) {   \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                      \
  }                                                                                              \
  Word##bits __tsan_atomic##bits##_fetch_sub(volatile Word##bits* at, Word##bits value, int) {   \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                      \
  }                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile Word##bits* at, Word##bits* wanted, \
                                                    Word##bits value, int, int) {                \
    return __atomic_compare_exchange_n(at, wanted, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                        \
  }                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile Word##bits* at, Word##bits* wanted,   \
                                                  Word##bits value, int, int) {                  \
    return __atomic_compare_exchange_n(at, wanted, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                        \
  }
KEEL_ATOMIC(8)
KEEL_ATOMIC(32)
KEEL_ATOMIC(64)
#undef KEEL_ATOMIC
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}
