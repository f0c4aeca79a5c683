#include "device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "container.h"
#include "cuda.cuh"
#include "memory.h"

namespace keel {

std::string human_bytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

#ifdef KEEL_WITH_CUDA

void cuda_check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clear it: the next call must not report this one's error
  fail<DeviceError>("cuda", "{} failed: {} ({})", what, cudaGetErrorString(status),
                    cudaGetErrorName(status));
}

namespace {

constexpr int kMostGpus = 64;

struct Visible {
  int count = 0;
  std::string why_none;
};

const Visible& visible() {
  static const Visible found = [] {
    Visible v;
    const cudaError_t status = cudaGetDeviceCount(&v.count);
    if (status != cudaSuccess) {
      cudaGetLastError();
      v.count = 0;
      v.why_none = fmt::format("the CUDA driver says: {}", cudaGetErrorString(status));
    } else if (v.count == 0) {
      v.why_none = "the CUDA driver sees no GPU";
    }
    v.count = std::min(v.count, kMostGpus);
    return v;
  }();
  return found;
}

// One stream per GPU and process; made at first use, never destroyed (the driver outlives us).
cudaStream_t default_stream(int index) {
  static std::mutex mutex;
  static auto& streams = *new std::vector<cudaStream_t>(visible().count, nullptr);
  std::lock_guard lock(mutex);
  if (!streams[index]) {
    cuda_check(cudaSetDevice(index), "cudaSetDevice");
    cuda_check(cudaStreamCreateWithFlags(&streams[index], cudaStreamNonBlocking),
               "cudaStreamCreate");
  }
  return streams[index];
}

// By GPU; null: the default stream. Nothing to destroy, as tensors with static storage ask for it
// when the thread's own things are gone.
thread_local std::array<void*, kMostGpus> scoped_streams{};

}  // namespace

int cuda_device_count() { return visible().count; }
std::string why_no_cuda() { return visible().why_none; }

void* current_stream(Device device) {
  if (device.is_cpu()) return nullptr;
  const auto index = static_cast<std::size_t>(device.index());
  if (scoped_streams[index]) return scoped_streams[index];
  return default_stream(device.index());
}

void synchronize(Device device) {
  if (device.is_cuda()) cuda_check(cudaStreamSynchronize(stream_of(device)), "synchronize");
}

Stream::Stream(Device device) : device_(device) {
  if (device.is_cpu()) return;
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  cudaStream_t stream;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_ = stream;
}

Stream::~Stream() {
  if (!stream_) return;
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));  // unchecked: destructors do not throw
  detail::forget_stream(device_, stream_);
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
  cudaGetLastError();
}

void StreamScope::enter(const Stream& stream) {
  if (device_.is_cpu()) return;
  // What the old stream wrote must be there for the new one. What was freed on it may be had, too,
  // unless it is a scope's: a recorded graph may be about to write there again.
  if (current_stream(device_) == default_stream(device_.index()))
    detail::settle_stream(device_);
  else
    synchronize(device_);
  const auto index = static_cast<std::size_t>(device_.index());
  previous_ = std::exchange(scoped_streams[index], stream.stream_);
}

StreamScope::~StreamScope() {
  if (device_.is_cpu()) return;
  void*& current = scoped_streams[static_cast<std::size_t>(device_.index())];
  // Unchecked, and nobody else's error later.
  if (cudaStreamSynchronize(static_cast<cudaStream_t>(current)) != cudaSuccess) cudaGetLastError();
  current = previous_;
}

#else

int cuda_device_count() { return 0; }
std::string why_no_cuda() { return "this build has no CUDA (configure with -DKEEL_CUDA=ON)"; }
void* current_stream(Device) { return nullptr; }
void synchronize(Device) {}
Stream::Stream(Device device) : device_(device) {}
Stream::~Stream() = default;
void StreamScope::enter(const Stream&) {}
StreamScope::~StreamScope() = default;

#endif

StreamScope::StreamScope(Device device) : own_(std::in_place, device), device_(device) {
  enter(*own_);
}

StreamScope::StreamScope(const Stream& stream) : device_(stream.device()) { enter(stream); }

Device Device::cuda(int index) {
  const int count = cuda_device_count();
  if (count == 0) fail<DeviceError>("device", "got cuda:{}, but {}", index, why_no_cuda());
  check<DeviceError>(index >= 0 && index < count, "device", "got cuda:{}, wanted cuda:0 to cuda:{}",
                     index, count - 1);
  return Device(index);
}

Device Device::parse(std::string_view text) {
  if (text == "cpu") return cpu();
  if (text == "auto") return cuda_device_count() > 0 ? cuda(0) : cpu();
  if (text == "cuda") return cuda(0);
  if (text.starts_with("cuda:")) {
    int index = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + 5, end, index);
    if (problem == std::errc() && stop == end) return cuda(index);
  }
  fail<DeviceError>("device", "got '{}', wanted auto, cpu, cuda or cuda:N", text);
}

namespace {

// "MemAvailable:  12345 kB" and its like; `fallback` where the file or the key is missing.
std::size_t meminfo_bytes(std::string_view key, std::size_t fallback) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::stoull(line.substr(key.size() + 1)) * 1024;
  return fallback;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

std::string cpu_vectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "unknown";
#endif
}

}  // namespace

std::size_t free_memory(Device device) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cuda()) {  // describe() asks for all there is to know, which takes longer
    std::size_t free = 0, total = 0;
    cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
    cuda_check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
#endif
  return describe(device).free_bytes;
}

DeviceInfo describe(Device device) {
  DeviceInfo info;
  if (device.is_cpu()) {
    const std::size_t physical =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
    info.name = cpu_model();
    info.total_bytes = meminfo_bytes("MemTotal", physical);
    info.free_bytes = free_in_container(meminfo_bytes("MemAvailable", physical));
    info.units = static_cast<int>(std::thread::hardware_concurrency());
    info.architecture = cpu_vectors();
    return info;
  }
#ifdef KEEL_WITH_CUDA
  cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, device.index()), "cudaGetDeviceProperties");
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  cuda_check(cudaMemGetInfo(&info.free_bytes, &info.total_bytes), "cudaMemGetInfo");
  info.name = properties.name;
  info.units = properties.multiProcessorCount;
  info.architecture = fmt::format("sm_{}{}", properties.major, properties.minor);
#endif
  return info;
}

}  // namespace keel
