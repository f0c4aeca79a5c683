// Launches on the CPU: tiles shared out among threads, a group each.
#pragma once

#include <algorithm>
#include <type_traits>

#include "group.h"
#include "stream_copy.h"
#include "tiling.h"

#ifdef KEEL_CPU_GROUP_HEADER
#include KEEL_CPU_GROUP_HEADER  // tests: 32 real threads in place of one
#endif

namespace keel {

#ifdef KEEL_CPU_GROUP_HEADER
using CpuGroup = ThreadGroup;
#else
using CpuGroup = HostGroup;
#endif

/// A HostGroup that stores past the caches: the same bits (tests/kernels/stream_copy.cpp).
struct StreamingHostGroup : HostGroup {
  template <class T, class F>
  KEEL_HD void store(int64_t n, T* target, F f) const {
    constexpr int64_t kHeld = 2048 / sizeof(T);  // from a corner of the first-level cache
    alignas(64) T held[kHeld];
    for (int64_t at = 0; at < n; at += kHeld) {
      const int64_t count = n - at < kHeld ? n - at : kHeld;
      HostGroup::store(count, held, [&](auto i) { return f(at + i); });
#ifndef __CUDA_ARCH__  // KEEL_HD only so that nvcc lets a Program call it
      stream_copy(target + at, held, static_cast<std::size_t>(count) * sizeof(T));
#endif
    }
  }
};

namespace detail {

// Below this many elements a launch stays on one thread: waking the others costs more. It does not
// even enter a parallel region, which allocates for a team of one.
inline constexpr int64_t kWorthThreads = 32768;
inline constexpr int64_t kParts = 64;  // what threads share a launch by

template <class Group, class Program>
void launch_on_threads(const Tiling& tiling, const Program& program) {
  const int64_t tiles = tiling.tiles(), parts = std::min(tiles, kParts);
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    // A copy is this thread's alone: what is stored cannot change it, and its numbers stay in
    // registers. g++ does not vectorise a loop that selects by one that it has to read again.
    const Program own = program;
    run_tiles(own, Group(), tiling, tiles * part / parts, tiles * (part + 1) / parts);
    if constexpr (std::is_same_v<Group, StreamingHostGroup>) stream_fence();
  }
}

// Where a row is read whole before any of it is written, one thread reads or writes, and never both
// at once, unless the processor gets to the next row before this one is done: not where rows are
// long. Then a store that need not read its line first is worth more than a result that is partly
// in a cache.
template <class Program>
bool streams(const Tiling& tiling) {
  constexpr int64_t kLongRow = 12 << 10, kBeyondCaches = 32 << 20;  // bytes
  constexpr int64_t kSize = sizeof(typename Program::Scalar);
  return tiling.width * kSize >= kLongRow && tiling.work * kSize >= kBeyondCaches;
}

template <class Program>
void launch_cpu(const Tiling& tiling, const Program& program) {
  const int64_t tiles = tiling.tiles();
#ifdef KEEL_CPU_GROUP_HEADER
  CpuGroup::run([&](CpuGroup group) { run_tiles(program, group, tiling, 0, tiles); },
                held_elements<Program>(tiling.width));
#else
  if (tiles == 1 || tiling.work < kWorthThreads)
    return run_tiles(program, HostGroup(), tiling, 0, tiles);
  if constexpr (kRereads<Program>)
    if (streams<Program>(tiling)) return launch_on_threads<StreamingHostGroup>(tiling, program);
  launch_on_threads<HostGroup>(tiling, program);
#endif
}

}  // namespace detail
}  // namespace keel
