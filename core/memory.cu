#include "memory.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "block_cache.h"
#include "cuda.cuh"
#include "system_memory.h"

namespace keel {
namespace {

using detail::Block;
using detail::capacity_for;
using detail::FreeLists;
using detail::kMiB;
using detail::ThreadCache;

// Kernels' code and the libraries' own memory come at first use, and from no pool of ours.
constexpr std::size_t kLeftToCuda = 512 * kMiB;

std::size_t beside_cuda(Device device, std::size_t bytes) {
  return device.is_cuda() ? bytes - std::min(bytes, kLeftToCuda) : bytes;
}

[[noreturn]] void throw_out_of_memory(Device device, std::size_t bytes, std::size_t free,
                                      std::size_t in_use, const char* what) {
  throw OutOfMemory(
      "memory",
      fmt::format("{} on {}: needs {} ({} bytes), {} free, {} held by living tensors; try fewer "
                  "rows, members or seeds, --dtype f32, or {}",
                  what, device, human_bytes(bytes), bytes, human_bytes(free), human_bytes(in_use),
                  device.is_cpu() ? "a machine with more memory" : "--device cpu"),
      bytes, free);
}

class Pool {
 public:
  explicit Pool(Device device) : device_(device) { detail::keep_what_is_freed(device); }

  Block* take(std::size_t bytes) {
    const std::size_t capacity = capacity_for(device_, bytes);
    Block* block = nullptr;
    ThreadCache* mine = device_.is_cpu() ? ThreadCache::mine() : nullptr;
    if (mine) block = mine->take(capacity);
    if (!block) block = take_shared(bytes, capacity);
    if (device_.is_cpu()) ASAN_UNPOISON_MEMORY_REGION(block->data, capacity);
#ifdef KEEL_EMULATED_CUDA
    if (device_.is_cuda()) emulated::forget(stream_of(device_), block->data, capacity);
#endif
    block->references.store(1, std::memory_order_relaxed);
    const std::size_t now = in_use_.fetch_add(capacity, std::memory_order_relaxed) + capacity;
    for (std::size_t peak = peak_.load(std::memory_order_relaxed);
         now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed);) {
    }
    return block;
  }

  void give_back(Block* block) noexcept {
    in_use_.fetch_sub(block->capacity, std::memory_order_relaxed);
    if (device_.is_cpu()) ASAN_POISON_MEMORY_REGION(block->data, block->capacity);
    ThreadCache* mine = device_.is_cpu() ? ThreadCache::mine() : nullptr;
    if (mine && mine->keep(block)) return;
    share(block);
  }

  /// To the blocks that every thread may take.
  void share(Block* block) noexcept {
    block->stream = current_stream(device_);
    std::lock_guard lock(mutex_);
    shared_.push(block);
  }

  void trim() {
    std::lock_guard lock(mutex_);
    trim_locked();
  }

  void settle_stream() {
    std::lock_guard lock(mutex_);  // nobody frees more meanwhile
    synchronize(device_);
    forget_locked(current_stream(device_));
  }

  void forget_stream(void* stream) noexcept {
    std::lock_guard lock(mutex_);
    forget_locked(stream);
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    const std::size_t in_use = in_use_.load(std::memory_order_relaxed);
    return {in_use, peak_.load(std::memory_order_relaxed), held_ - in_use, system_allocations_};
  }

  void reset_peak() { peak_.store(in_use_.load()); }

 private:
  void forget_locked(void* stream) noexcept {
    for (FreeLists::Waiting& waiting : shared_.all())
      for (Block* block = waiting.head; block; block = block->next)
        if (block->stream == stream) block->stream = nullptr;
  }

  Block* take_shared(std::size_t bytes, std::size_t capacity) {
    std::lock_guard lock(mutex_);
    if (Block* block = pop_shared(capacity)) return block;
    auto fresh = std::make_unique<Block>();
    fresh->device = device_;
    fresh->capacity = capacity;
    fresh->data = detail::system_allocate(device_, capacity);
    if (!fresh->data) {
      trim_locked();
      fresh->data = detail::system_allocate(device_, capacity);
    }
    if (!fresh->data)
      throw_out_of_memory(device_, bytes, free_memory(device_), in_use_.load(), "allocation");
    ++system_allocations_;
    held_ += capacity;
    return fresh.release();
  }

  // A GPU block may be reused without waiting only on the stream that used it last.
  Block* pop_shared(std::size_t capacity) {
    void* stream = current_stream(device_);
    for (Block** link = &shared_.list_for(capacity); *link; link = &(*link)->next) {
      Block* block = *link;
      if (block->stream && block->stream != stream) continue;
      *link = block->next;
      return block;
    }
    return nullptr;
  }

  void release_to_system(Block* block) {
    if (device_.is_cpu()) ASAN_UNPOISON_MEMORY_REGION(block->data, block->capacity);
    detail::system_free(device_, block->data);
    held_ -= block->capacity;
    delete block;
  }

  // Blocks of other streams stay: a recorded graph may be about to write to them again.
  void trim_locked() {
    ThreadCache* mine = device_.is_cpu() ? ThreadCache::mine() : nullptr;
    if (mine) mine->drain([&](Block* block) { release_to_system(block); });
    void* stream = current_stream(device_);
    for (FreeLists::Waiting& waiting : shared_.all()) {
      for (Block** link = &waiting.head; Block* block = *link;) {
        if (block->stream && block->stream != stream) {
          link = &block->next;
          continue;
        }
        *link = block->next;
        release_to_system(block);
      }
    }
    detail::system_trim(device_);
  }

  Device device_;
  std::atomic<std::size_t> in_use_{0}, peak_{0};
  std::mutex mutex_;  // of all that follows
  FreeLists shared_;
  std::size_t held_ = 0;  // bytes the system has given: in use, shared, or in a thread's cache
  std::uint64_t system_allocations_ = 0;
};

// Never destroyed: tensors with static storage may outlive any order of destruction.
Pool& pool_of(Device device) {
  if (device.is_cpu()) {
    static Pool* cpu = new Pool(Device::cpu());
    return *cpu;
  }
  static std::mutex mutex;
  static auto* pools = new std::vector<Pool*>();
  std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device.index());
  if (pools->size() <= index) pools->resize(index + 1, nullptr);
  if (!(*pools)[index]) (*pools)[index] = new Pool(device);
  return *(*pools)[index];
}

}  // namespace

namespace detail {

ThreadCache::~ThreadCache() {
  alive_ = false;
  drain([](Block* block) { pool_of(Device::cpu()).share(block); });
}

void retain(Block* block) noexcept { block->references.fetch_add(1, std::memory_order_relaxed); }

void release(Block* block) noexcept {
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    pool_of(block->device).give_back(block);
}

void forget_stream(Device device, void* stream) noexcept { pool_of(device).forget_stream(stream); }
void settle_stream(Device device) { pool_of(device).settle_stream(); }

}  // namespace detail

Storage::Storage(Device device, std::size_t bytes) : block_(pool_of(device).take(bytes)) {}
void* Storage::data() const noexcept { return block_ ? block_->data : nullptr; }
Device Storage::device() const noexcept { return block_ ? block_->device : Device(); }
bool Storage::unique() const noexcept {
  return block_ && block_->references.load(std::memory_order_acquire) == 1;
}

MemoryStats memory_stats(Device device) { return pool_of(device).stats(); }
void reset_peak(Device device) { pool_of(device).reset_peak(); }
void trim_memory(Device device) { pool_of(device).trim(); }

std::size_t available_memory(Device device) {
  return beside_cuda(device, free_memory(device) + memory_stats(device).cached);
}

void require_memory(Device device, std::size_t bytes, const char* what) {
  if (bytes <= beside_cuda(device, free_memory(device))) return;
  trim_memory(device);
  const std::size_t free = beside_cuda(device, free_memory(device));
  if (bytes > free) throw_out_of_memory(device, bytes, free, memory_stats(device).in_use, what);
}

}  // namespace keel
