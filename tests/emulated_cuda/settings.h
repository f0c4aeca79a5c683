// What tests choose of the emulated GPUs.
#pragma once

#include <cstdlib>

namespace keel::emulated {

/// The compute capability that every device says it has, and by which kernels are chosen. Tests set
/// it; at first what KEEL_EMULATED_CAPABILITY says (90: as an H200), or 8.6.
struct Capability {
  int major = 8, minor = 6;
};
inline Capability& capability() {
  static Capability it = [] {
    const char* asked = std::getenv("KEEL_EMULATED_CAPABILITY");
    const int both = asked ? std::atoi(asked) : 86;
    return Capability{both / 10, both % 10};
  }();
  return it;
}

/// Whether devices have pools of memory, which a few virtual ones have not: KEEL_EMULATED_POOLS=0.
inline bool has_memory_pools() {
  static const bool has = [] {
    const char* asked = std::getenv("KEEL_EMULATED_POOLS");
    return !asked || std::atoi(asked) != 0;
  }();
  return has;
}

/// Whether launches for tensors of the CPU are emulated too, at once and without a stream.
inline bool& takes_cpu_tensors() {
  static bool it = false;
  return it;
}

}  // namespace keel::emulated
