// A warp that runs PTX, as its instructions see it.
#pragma once

#include <vector>

#include "code.h"

namespace keel::emulated::ptx {

/// What a block's warps share.
struct Block {
  const Kernel* kernel = nullptr;
  unsigned char* shared = nullptr;
  std::size_t shared_bytes = 0;
  const unsigned char* parameters = nullptr;
  bool watched = false;  // races are looked for
  bool counted = false;  // the instructions issued
};

struct Warp {
  enum class State : std::uint8_t { ready, together, at_barrier, done };
  struct Copy {  // cp.async: arrives when its thread waits for it, and no sooner
    unsigned char* to;
    const unsigned char* from;
    std::size_t bytes;
    int commit;
  };

  Block* block = nullptr;
  unsigned first = 0;      // thread of the block
  unsigned lanes = kWarp;  // how many there are
  std::uint32_t mask = 0;  // those that run the instruction
  int line = 0;            // the instruction's
  std::vector<Register> registers;
  std::uint32_t place[kWarp] = {};
  State state[kWarp] = {};
  std::vector<Copy> copies[kWarp];
  int commits[kWarp] = {};

  template <class T>
  T* at(int index) {
    return reinterpret_cast<T*>(registers[static_cast<std::size_t>(index)].bytes);
  }
  bool runs(unsigned lane) const { return mask >> lane & 1; }
  [[noreturn]] void fail(const std::string& why) const {
    ptx::fail(block->kernel->file, line, why);
  }
};

}  // namespace keel::emulated::ptx
