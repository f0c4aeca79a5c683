// What device code calls and reads by CUDA's names, by the block that runs now.
#pragma once

#include "block.h"

#define __device__
#define __global__
#define __shared__ static  // blocks run one after another
#define __launch_bounds__(...)
#define __grid_constant__

namespace keel::emulated {

/// cp.async and its like. Without a block, a test calling a kernel's body thread after thread, the
/// copy is made at once. Its traffic is counted where it is asked for.
[[gnu::noinline]] inline void copy_async(void* to, const void* from, std::size_t bytes) {
  if (Traffic::counts()) {
    Traffic::touch(from, bytes, false, __builtin_return_address(0));
    Traffic::touch(to, bytes, true, __builtin_return_address(0));
  }
  Block::runs() ? Block::current().copy_async(to, from, bytes)
                : static_cast<void>(std::memcpy(to, from, bytes));
}
inline void commit_copies() {
  if (Block::runs()) Block::current().commit_copies();
}
inline void wait_for_copies(int youngest) {
  if (Block::runs()) Block::current().wait_for_copies(youngest);
}

struct BlockIndex {
  struct X {
    operator unsigned() const { return Block::current().block_index(); }
  } x;
};
struct ThreadIndex {
  struct X {
    operator unsigned() const { return Block::current().thread_index(); }
  } x;
};

}  // namespace keel::emulated

inline constexpr keel::emulated::BlockIndex blockIdx;
inline constexpr keel::emulated::ThreadIndex threadIdx;

inline void __syncthreads() { keel::emulated::Block::current().wait_for_block(); }
template <class T>
T __shfl_xor_sync(unsigned members, T value, int distance) {
  auto& block = keel::emulated::Block::current();
  return block.exchange(value, members)(block.lane() ^ static_cast<unsigned>(distance));
}

inline int min(int a, int b) { return b < a ? b : a; }
