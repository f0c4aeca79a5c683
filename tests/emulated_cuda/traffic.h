// Counts what a profiler would of device code's accesses: the requests of a warp, the sectors of
// device memory that each touches, its passes over the banks of shared memory.
//
// A request is what the lanes of a warp access by one instruction (of the host's code, of which
// every access calls accesses.cpp) for the n-th time since the warp last met: at a barrier, at a
// shuffle, or where the block began. Lanes that go round a loop together stay together; lanes that
// took another branch are left out, as they are masked out by a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace keel::emulated {

enum class Space { device, shared };

/// Of one instruction, or of all: what its requests cost.
struct Requests {
  std::int64_t requests = 0, lanes = 0;  // lanes that took part, summed
  std::int64_t bytes = 0;                // distinct ones of each request
  /// Of device memory: sectors of 32 bytes. Of shared memory: passes over its 32 banks of four
  /// bytes, each of which gives one word, to as many lanes as want it. A warp's accesses of four
  /// bytes are one group of lanes, of eight bytes two, of sixteen bytes four, one after another
  /// (NVIDIA at GTC 2019, S9593, on sixteen bytes: lanes 0 to 7 first, and so on).
  std::int64_t cost = 0;
  /// The least: as many sectors as its bytes fill; a pass a group, whose words fit the banks.
  std::int64_t fewest = 0;
  /// Of shared memory, where two groups go together if lanes 2 i and 2 i + 1, or i and i ^ 2, want
  /// the same: not NVIDIA's word, but what WarpLayout (kernels/factor_gram_block.h) is for, and
  /// Scott Gray saw (NervanaSystems/maxas, issue 8: two passes are the least of sixteen bytes).
  std::int64_t paired = 0;

  Requests& operator+=(const Requests&);
};

/// An instruction: its return address; the bytes of a lane.
struct Site {
  const void* instruction;
  Space space;
  bool writes;
  int bytes;
  Requests counted;
};

/// Launches of one kernel.
struct KernelTraffic {
  const void* kernel;
  std::int64_t launches = 0;
  std::vector<Site> sites;
  /// Bytes of device memory's sectors that a launch read before it wrote them, and that it wrote,
  /// each once: what a cache without bounds leaves to be moved.
  std::int64_t loaded = 0, stored = 0;

  Requests total(Space, bool writes) const;
};

class Traffic {
 public:
  /// The kernels that run in `work`, which waits for them, in the order in which they came.
  static std::vector<KernelTraffic> of(const std::function<void()>& work);

  // Of the emulation.
  static bool counts() { return counts_; }
  static void begin_launch(const void* kernel);
  static void begin_block(const void* shared, std::size_t shared_bytes);
  static void switch_to(unsigned thread);
  static void meet();  ///< every lane of the warp has come as far as it may alone
  static void end_launch();
  static void touch(const void* address, std::size_t bytes, bool writes, const void* instruction);

 private:
  static bool counts_;
};

}  // namespace keel::emulated
