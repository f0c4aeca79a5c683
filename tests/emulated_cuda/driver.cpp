#include "driver.h"

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "state.h"

namespace keel::emulated {
namespace {

thread_local int device_now = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::set<Stream*>& streams() {
  static auto* all = new std::set<Stream*>();
  return *all;
}

// Destroyed streams with work left, which is done some time after: here behind everybody else's.
std::deque<std::unique_ptr<Stream>>& abandoned() {
  static auto* all = new std::deque<std::unique_ptr<Stream>>();
  return *all;
}

void run_abandoned() {
  for (; !abandoned().empty(); abandoned().pop_front()) run_all(*abandoned().front());
}

// What recording does not allow spoils what was recorded.
bool refused_while_recording(Stream& stream) {
  if (stream.recorded) stream.spoilt = true;
  return stream.recorded;
}

}  // namespace

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

bool at_once(Stream* stream) { return !stream && takes_cpu_tensors(); }

bool known(Stream* stream) { return streams().count(stream) > 0; }

std::recursive_mutex& driver_mutex() {
  static auto* mutex = new std::recursive_mutex();
  return *mutex;
}

Memory& memory_of(int device) {
  static auto* all = new Memory[kDevices];
  return all[device];
}

int current_device() { return device_now; }

void enqueue(Stream& stream, Work work) {
  if (stream.recorded)
    stream.recorded->nodes.push_back(std::move(work));
  else
    stream.waiting.push_back(std::move(work));
}

void run_all(Stream& stream) {
  if (stream.waiting.empty()) return;
  const Memory::Open open(memory_of(stream.device));
  while (!stream.waiting.empty()) {
    const Work work = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    work();
  }
}

void forget(Stream* stream, void* data, std::size_t bytes) {
  const std::lock_guard lock(driver_mutex());
  enqueue(*stream, [=] { std::memset(data, Memory::kFresh, bytes); });
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
  }
  return "unknown error";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "emulated";
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 12040, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 12040, cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) { return *count = kDevices, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return result(cudaErrorInvalidDevice);
  device_now = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= kDevices) return result(cudaErrorInvalidDevice);
  *properties = {"emulated GPU", capability().major, capability().minor, 1};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
  if (device < 0 || device >= kDevices) return result(cudaErrorInvalidDevice);
  *value = what == cudaDevAttrComputeCapabilityMajor   ? capability().major
           : what == cudaDevAttrComputeCapabilityMinor ? capability().minor
                                                       : has_memory_pools();
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(driver_mutex());
  *total = Memory::kBytes;
  *free = Memory::kBytes - memory_of(device_now).in_use();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (device < 0 || device >= kDevices) return result(cudaErrorInvalidDevice);
  *pool = &memory_of(device);
  return result(has_memory_pools() ? cudaSuccess : cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(driver_mutex());
  *stream = new Stream{device_now, {}};
  streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  streams().erase(stream);
  abandoned().emplace_back(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  if (refused_while_recording(*stream)) return result(cudaErrorStreamCaptureUnsupported);
  run_all(*stream);
  run_abandoned();
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  enqueue(*stream, [=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new Event{};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(driver_mutex());
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  event->reached = {};
  enqueue(*stream, [=] { event->reached = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::lock_guard lock(driver_mutex());
  if (!from->reached || !to->reached) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*to->reached - *from->reached).count();
  return cudaSuccess;
}

namespace {

void run_device(int device) {
  for (Stream* stream : streams())
    if (stream->device == device) run_all(*stream);
  run_abandoned();
}

}  // namespace

// A recorded allocation would be the graph's own, which a pool must not keep: refused.
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream) || stream->device != device_now) return result(cudaErrorInvalidResourceHandle);
  if (refused_while_recording(*stream)) return result(cudaErrorStreamCaptureUnsupported);
  if (!has_memory_pools()) return result(cudaErrorNotSupported);
  Memory& memory = memory_of(stream->device);
  *data = memory.allocate(bytes);
  if (!*data) {  // what waits to be freed
    run_device(stream->device);
    *data = memory.allocate(bytes);
  }
  return result(*data ? cudaSuccess : cudaErrorMemoryAllocation);
}
// Both wait for all that the device has to do.
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  const std::lock_guard lock(driver_mutex());
  run_device(device_now);
  *data = memory_of(device_now).allocate(bytes);
  return result(*data ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* data) {
  const std::lock_guard lock(driver_mutex());
  for (int device = 0; device < kDevices; ++device)
    if (memory_of(device).spans(data)) {
      run_device(device);
      if (!memory_of(device).free(data)) give_up("a free of what was not allocated");
    }
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  if (refused_while_recording(*stream)) return result(cudaErrorStreamCaptureUnsupported);
  if (!has_memory_pools()) return result(cudaErrorNotSupported);
  enqueue(*stream, [data, device = stream->device] {
    if (!memory_of(device).free(data)) give_up("a free of what was not allocated");
  });
  return cudaSuccess;
}

// Memory of a host that is not pinned is read before the call returns, unless it is recorded: then
// whenever the graph runs.
namespace {

// Where in the memory of a GPU it lies, if in any; -1: beyond what was allocated there.
std::optional<int> device_of(const void* address, std::size_t bytes) {
  for (int device = 0; device < kDevices; ++device) {
    const Memory& memory = memory_of(device);
    if (memory.spans(address)) return memory.holds(address, bytes) ? device : -1;
  }
  return {};
}

void enqueue_copy(Stream& stream, void* to, const void* from, std::size_t bytes, bool staged) {
  const auto move = [to, bytes](const void* source) {
    const Memory::Open first(memory_of(0)), second(memory_of(1));
    std::memmove(to, source, bytes);
  };
  if (!staged) return enqueue(stream, [=] { move(from); });
  const auto* begin = static_cast<const char*>(from);
  const std::vector<char> kept(begin, begin + bytes);
  enqueue(stream, [=] { move(kept.data()); });
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (at_once(stream)) return std::memcpy(to, from, bytes), cudaSuccess;
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  const std::optional<int> target = device_of(to, bytes), source = device_of(from, bytes);
  // Between pools of two devices it is known to fail, and must be asked for as a peer's copy.
  if (target == -1 || source == -1 || (target && source && target != source) ||
      (kind == cudaMemcpyHostToDevice && (source || !target)) ||
      (kind == cudaMemcpyDeviceToHost && (target || !source)))
    return result(cudaErrorInvalidValue);
  enqueue_copy(*stream, to, from, bytes, !source && !stream->recorded);
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream)) return result(cudaErrorInvalidResourceHandle);
  if (device_of(to, bytes) != to_device || device_of(from, bytes) != from_device)
    return result(cudaErrorInvalidValue);
  enqueue_copy(*stream, to, from, bytes, false);
  return cudaSuccess;
}

}  // namespace keel::emulated
