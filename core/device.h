// Device: where a tensor lives, and therefore where an op on it runs. Chosen at run time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "error.h"

namespace keel {

class Device {
 public:
  constexpr Device() = default;  // the CPU

  static constexpr Device cpu() { return Device(); }

  /// GPU `index`. Throws DeviceError, naming the missing build option or driver, where there is
  /// none.
  static Device cuda(int index = 0);

  /// "cpu", "cuda", "cuda:1", or "auto": the first visible GPU, the CPU where there is none.
  static Device parse(std::string_view text);

  constexpr bool is_cpu() const { return index_ < 0; }
  constexpr bool is_cuda() const { return index_ >= 0; }
  constexpr int index() const { return index_ < 0 ? 0 : index_; }
  std::string str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", index_); }

  friend constexpr bool operator==(const Device&, const Device&) = default;

 private:
  constexpr explicit Device(int index) : index_(index) {}
  int index_ = -1;  // -1: CPU
};

/// Visible GPUs; 0 without a driver, without a card, and in a build without CUDA.
int cuda_device_count();

/// Why cuda_device_count() is 0, in words for an error message; empty where it is not.
std::string why_no_cuda();

struct DeviceInfo {
  std::string name;
  std::size_t total_bytes = 0, free_bytes = 0;
  int units = 0;             // hardware threads of a CPU, multiprocessors of a GPU
  std::string architecture;  // "AVX-512", "sm_90"
};

DeviceInfo describe(Device device);

/// describe(device).free_bytes, which of a GPU takes less than all of it.
std::size_t free_memory(Device device);

/// Waits until everything issued to `device` by this thread is done.
void synchronize(Device device);

/// The CUDA stream that ops of this thread use on `device`, as an opaque cudaStream_t; null on the
/// CPU.
void* current_stream(Device device);

/// A stream of a GPU, beside the one that ops go to; nothing on the CPU. Destroying it waits for
/// it.
class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }

 private:
  friend class StreamScope;
  Device device_;
  void* stream_ = nullptr;
};

/// While it lives, this thread's ops on a device go to another stream than before (for a CUDA-graph
/// capture, say). It waits for the one before as it begins, and for the other as it ends.
class StreamScope {
 public:
  explicit StreamScope(Device device);  ///< to one of its own
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  void enter(const Stream& stream);

  std::optional<Stream> own_;
  Device device_;
  void* previous_ = nullptr;
};

}  // namespace keel

template <>
struct fmt::formatter<keel::Device> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const keel::Device& device, Context& context) const {
    return fmt::formatter<std::string>::format(device.str(), context);
  }
};
