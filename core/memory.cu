#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "block_cache.h"
#include "cuda.cuh"

namespace keel {
namespace {

using detail::Block;
using detail::capacity_for;
using detail::FreeLists;
using detail::kLarge;
using detail::kMiB;
using detail::ThreadCache;

// Kernels' code and the libraries' own memory come at first use, and from no pool of ours.
constexpr std::size_t kLeftToCuda = 512 * kMiB;
// A page's address is looked up in tables, and few are remembered: of 2 MiB a few reach far.
constexpr std::size_t kHugePage = 2 * kMiB, kHugeFrom = 4 * kMiB;

void* host_allocate(std::size_t bytes) {
  void* data = nullptr;
  const bool huge = bytes >= kHugeFrom;
  if (posix_memalign(&data, huge ? kHugePage : 64, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(data, bytes, MADV_HUGEPAGE);  // a wish: where it is refused, small pages serve
#endif
  return data;
}

#ifdef KEEL_WITH_CUDA
// Some virtual GPUs have none: there a request, and what is given back, waits for all that runs.
bool has_memory_pools(Device device) noexcept {
  int has = 0;
  if (cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device.index()) != cudaSuccess)
    cudaGetLastError();
  return has != 0;
}
#endif

void* system_allocate(Device device, std::size_t bytes) {
  if (device.is_cpu()) {
    // Linux promises memory it does not have; looking first turns a later kill into an error.
    if (bytes >= kLarge && bytes > free_memory(device)) return nullptr;
    return host_allocate(bytes);
  }
#ifdef KEEL_WITH_CUDA
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  // CUDA would make it the recorded graph's, and take it back behind the pool's back.
  cudaStreamCaptureStatus recording;
  cuda_check(cudaStreamIsCapturing(stream_of(device), &recording), "cudaStreamIsCapturing");
  check<DeviceError>(recording == cudaStreamCaptureStatusNone, "memory",
                     "got an allocation of {} bytes while a graph is recorded, wanted the pool to "
                     "hold all that it takes",
                     bytes);
  void* data = nullptr;
  const cudaError_t status = has_memory_pools(device)
                                 ? cudaMallocAsync(&data, bytes, stream_of(device))
                                 : cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) {  // of such a size
    cudaGetLastError();
    return nullptr;
  }
  cuda_check(status, "cudaMalloc");
  return data;
#else
  return nullptr;
#endif
}

void system_free(Device device, void* data) noexcept {
  if (device.is_cpu()) return std::free(data);
#ifdef KEEL_WITH_CUDA
  const cudaError_t status =
      has_memory_pools(device) ? cudaFreeAsync(data, stream_of(device)) : cudaFree(data);
  if (status != cudaSuccess) cudaGetLastError();  // unchecked, and nobody else's error later
#endif
}

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
  explicit Pool(Device device) : device_(device) {
#ifdef KEEL_WITH_CUDA
    // Keep what was freed: the driver's default gives it back at each sync.
    if (device.is_cuda() && has_memory_pools(device)) {
      cudaMemPool_t pool;
      cuda_check(cudaDeviceGetDefaultMemPool(&pool, device.index()), "cudaDeviceGetDefaultMemPool");
      std::uint64_t threshold = ~std::uint64_t{0};
      cuda_check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
                 "cudaMemPoolSetAttribute");
    }
#endif
  }

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
    fresh->data = system_allocate(device_, capacity);
    if (!fresh->data) {
      trim_locked();
      fresh->data = system_allocate(device_, capacity);
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
    system_free(device_, block->data);
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
#ifdef KEEL_WITH_CUDA
    if (device_.is_cuda()) {
      cudaMemPool_t pool;
      synchronize(device_);
      if (cudaDeviceGetDefaultMemPool(&pool, device_.index()) != cudaSuccess ||
          cudaMemPoolTrimTo(pool, 0) != cudaSuccess)
        cudaGetLastError();
    }
#endif
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
