// The blocks behind Storage while nobody uses them: lists by size, and a cache a thread of its own.
// Private to memory.cu.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <vector>

#include "device.h"
#include "system_memory.h"

#if defined(KEEL_EMULATED_CUDA)  // is instrumented alike, to find races (tests/emulated_cuda)
#elif defined(__SANITIZE_ADDRESS__)
#define KEEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEL_ASAN 1
#endif
#endif
#ifdef KEEL_ASAN
#include <sanitizer/asan_interface.h>
#else  // a waiting block is poisoned, so that the sanitizer sees a use after free inside the pool
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace keel {
namespace detail {

/// Of the block that serves a request. Eight sizes an octave waste at most an eighth; large blocks
/// are cut to 2 MiB exactly. With KEEL_EXACT_BLOCKS set a GPU's are as large as asked for:
/// compute-sanitizer sees their ends.
inline std::size_t capacity_for(Device device, std::size_t bytes) {
  static const bool exact = std::getenv("KEEL_EXACT_BLOCKS") != nullptr;
  if (exact && device.is_cuda()) return std::max<std::size_t>(bytes, 1);
  constexpr std::size_t kSmallest = 64, kLargest = ~std::size_t{0} - 4 * kMiB;
  if (bytes <= kSmallest) return kSmallest;
  if (bytes > kLargest) return bytes;  // cannot be had; must not wrap round either
  const std::size_t step =
      bytes > kLarge ? 2 * kMiB : std::max(kSmallest, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

struct Block {
  std::atomic<int> references{1};
  Device device;
  std::size_t capacity = 0;
  void* data = nullptr;
  void* stream = nullptr;  // where a waiting block was last used; null: safe on any stream
  Block* next = nullptr;   // the next waiting block of this capacity
};

/// Waiting blocks by capacity. Grows only when a new size first comes.
class FreeLists {
 public:
  struct Waiting {
    std::size_t capacity;
    Block* head;
  };

  Block*& list_for(std::size_t capacity) {
    auto at = std::lower_bound(all_.begin(), all_.end(), capacity,
                               [](const Waiting& w, std::size_t c) { return w.capacity < c; });
    if (at == all_.end() || at->capacity != capacity)
      at = all_.insert(at, Waiting{capacity, nullptr});
    return at->head;
  }

  void push(Block* block) {
    Block*& head = list_for(block->capacity);
    block->next = head;
    head = block;
  }

  std::vector<Waiting>& all() { return all_; }

 private:
  std::vector<Waiting> all_;
};

/// What this thread freed on the CPU and will ask for again: no lock, and still in its own caches,
/// where another thread's blocks are not. Small blocks, up to a bound; the rest goes to the pool.
class ThreadCache {
 public:
  ThreadCache() { alive_ = true; }
  ~ThreadCache();  // hands all to the pool

  /// Null once the thread is ending: tensors may outlive the cache.
  static ThreadCache* mine() {
    thread_local ThreadCache cache;
    return alive_ ? &cache : nullptr;
  }

  Block* take(std::size_t capacity) {
    Block*& head = lists_.list_for(capacity);
    Block* block = head;
    if (block) {
      head = block->next;
      bytes_ -= capacity;
    }
    return block;
  }

  bool keep(Block* block) {
    constexpr std::size_t kLargest = 4 * kMiB, kAll = 64 * kMiB;
    if (block->capacity > kLargest || bytes_ + block->capacity > kAll) return false;
    bytes_ += block->capacity;
    lists_.push(block);
    return true;
  }

  /// Hands every block to f.
  template <class F>
  void drain(F f) {
    for (FreeLists::Waiting& waiting : lists_.all())
      while (Block* block = waiting.head) {
        waiting.head = block->next;
        f(block);
      }
    bytes_ = 0;
  }

 private:
  static inline thread_local bool alive_ = false;
  FreeLists lists_;
  std::size_t bytes_ = 0;
};

}  // namespace detail
}  // namespace keel
