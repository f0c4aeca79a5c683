// Storage: a reference-counted block of one device's memory. Freed blocks wait in a pool for the
// next request of their size, so a training loop stops asking the system after its first epoch. On
// the CPU each thread keeps what it freed, up to a bound, before the pool sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "device.h"

namespace keel {

namespace detail {
struct Block;
void retain(Block* block) noexcept;
void release(Block* block) noexcept;
void forget_stream(Device device, void* stream) noexcept;  // it is idle and about to be destroyed
void settle_stream(Device device);  // waits for the current one; what was freed there any may take
}  // namespace detail

/// Another thread may have one of a GPU's once the stream that wrote or reads it has been waited
/// for: the block goes to the stream of whoever lets go of it last.
class Storage {
 public:
  Storage() = default;

  /// At least `bytes` bytes on `device`, aligned to 64 (CPU) or 256 (CUDA). Contents undefined.
  /// Throws OutOfMemory: bytes needed, bytes free, what to try.
  Storage(Device device, std::size_t bytes);

  Storage(const Storage& other) noexcept : block_(other.block_) {
    if (block_) detail::retain(block_);
  }
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage() {
    if (block_) detail::release(block_);
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }
  void* data() const noexcept;
  Device device() const noexcept;
  bool unique() const noexcept;  ///< nobody else holds this block
  friend bool operator==(const Storage& a, const Storage& b) { return a.block_ == b.block_; }

 private:
  detail::Block* block_ = nullptr;
};

struct MemoryStats {
  std::size_t in_use = 0;                ///< bytes held by living Storages
  std::size_t peak_in_use = 0;           ///< largest in_use since the start or reset_peak
  std::size_t cached = 0;                ///< bytes waiting in the pool
  std::uint64_t system_allocations = 0;  ///< requests the pool could not serve from what it had
};

MemoryStats memory_stats(Device device);
void reset_peak(Device device);

/// Gives waiting blocks back to the system: all but those of another StreamScope that still lives,
/// and up to 64 MiB in the cache of each other thread.
void trim_memory(Device device);

/// Bytes that could be had now, free or in the pool; of a GPU's all but 512 MiB, which CUDA needs.
std::size_t available_memory(Device device);

/// Throws OutOfMemory unless so many are available, once the pool has given back what waits: for
/// plans made before allocating.
void require_memory(Device device, std::size_t bytes, const char* what);

}  // namespace keel
