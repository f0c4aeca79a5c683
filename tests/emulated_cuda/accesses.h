// Which accesses of instrumented code are looked at (accesses.cpp): those of device code while a
// launch runs, but for a thread's own stack, which stands for its registers.
#pragma once

#include <cstdint>

namespace keel::emulated {

struct Accesses {
  static constexpr std::uintptr_t kStack = 128 << 10;
  static inline bool watched = false;
  static inline std::uintptr_t stack = 0;  // of the thread that runs: where it begins
};

}  // namespace keel::emulated
