// Denormal numbers taken as zero while training. The moments of a unit that died decay towards
// them, where each operation costs a processor a hundred times its usual cycles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../core/threads.h"
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace keel {

/// Of the calling thread, while it lives. Does nothing where the processor offers no such mode.
class FlushDenormals {
 public:
  FlushDenormals() : before_(mode()) { set_mode(before_ | kFlush); }
  ~FlushDenormals() { set_mode(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr std::uint64_t kFlush = 0x8040;  // results, and operands
  static std::uint64_t mode() { return _mm_getcsr(); }
  static void set_mode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
  static std::uint64_t mode() {
    std::uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr std::uint64_t kFlush = 0;
  static std::uint64_t mode() { return 0; }
  static void set_mode(std::uint64_t) {}
#endif

  std::uint64_t before_;
};

/// Of all of OpenMP's threads, the calling one among them, which ops share; of that alone where it
/// is one of a parallel region's.
class FlushDenormalsEverywhere {
 public:
  FlushDenormalsEverywhere()
      : threads_(inside_parallel_region() ? 1 : static_cast<std::size_t>(thread_count())) {
    on_each([](std::optional<FlushDenormals>& own) { own.emplace(); });
    own_.emplace();  // last: a thread begins with the mode of the one that starts it
  }
  ~FlushDenormalsEverywhere() {
    on_each([](std::optional<FlushDenormals>& own) { own.reset(); });
    own_.reset();
  }
  FlushDenormalsEverywhere(const FlushDenormalsEverywhere&) = delete;
  FlushDenormalsEverywhere& operator=(const FlushDenormalsEverywhere&) = delete;

 private:
  // Of the calling thread outside of regions: clang's library puts back the mode that was there at
  // a region's end, and hands it to others at the next one's beginning. g++'s does neither.
  template <class F>
  void on_each(F f) {
#pragma omp parallel num_threads(static_cast <int>(threads_.size()))
    if (thread_index() > 0) f(threads_[static_cast<std::size_t>(thread_index())]);
  }
  std::optional<FlushDenormals> own_;
  std::vector<std::optional<FlushDenormals>> threads_;
};

}  // namespace keel
