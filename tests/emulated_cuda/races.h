// Finds data races of an emulated GPU's threads, as compute-sanitizer's racecheck does of a real
// one's, in device memory too: accesses.cpp hands the accesses of device code to here (not those
// that are made by memcpy).
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::emulated {

/// Who touches memory: a thread, and how many barriers its block has passed.
struct Toucher {
  std::uint32_t launch = 0, block = 0, barriers = 0;
  std::int32_t thread = 0;
};

/// Of the threads of one launch: two that touch the same word, at least one of which writes, must
/// be of one block and have a barrier between them; else the program ends. Looks at shared memory
/// [shared, shared + shared_bytes) of the block, at static variables, which is where emulated
/// __shared__ ones are, and at the memory of all GPUs. KEEL_EMULATED_RACES=0 switches it off.
class Races {
 public:
  /// A new launch, whose blocks run from now on. Returns whether races are looked for.
  static bool begin_launch();
  static void begin_block(std::uint32_t index, const void* shared, std::size_t shared_bytes);
  static void pass_barrier();
  static void switch_to(std::int32_t thread);
  static void end_launch();

  static void touch(const void* address, std::size_t bytes, bool writes);
};

}  // namespace keel::emulated
