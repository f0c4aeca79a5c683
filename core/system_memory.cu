#include "system_memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "cuda.cuh"

namespace keel::detail {
namespace {

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

}  // namespace

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

void keep_what_is_freed([[maybe_unused]] Device device) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cpu() || !has_memory_pools(device)) return;
  cudaMemPool_t pool;
  cuda_check(cudaDeviceGetDefaultMemPool(&pool, device.index()), "cudaDeviceGetDefaultMemPool");
  std::uint64_t threshold = ~std::uint64_t{0};
  cuda_check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
             "cudaMemPoolSetAttribute");
#endif
}

void system_trim([[maybe_unused]] Device device) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cpu()) return;
  cudaMemPool_t pool;
  synchronize(device);
  if (cudaDeviceGetDefaultMemPool(&pool, device.index()) != cudaSuccess ||
      cudaMemPoolTrimTo(pool, 0) != cudaSuccess)
    cudaGetLastError();
#endif
}

}  // namespace keel::detail
