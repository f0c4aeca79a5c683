// Work that a device does again and again: a CUDA graph, which one launch replays.
#pragma once

#include <functional>
#include <memory>

#include "device.h"

namespace keel {

/// What `work` gives a GPU's current stream to do, recorded as a CUDA graph and not yet done. Who
/// records it replays it: products in it name a workspace of the thread's.
///
/// `work` must have run before on this stream, so that the pool holds all memory that it takes
/// (system_allocations); it must not wait for the device. What it frees goes back to the pool, but
/// only to this stream: nobody else may take memory there while the graph lives, as a replay writes
/// to it again.
class RecordedWork {
 public:
  /// Throws DeviceError, or what `work` throws.
  RecordedWork(Device gpu, const std::function<void()>& work);
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  void replay();  ///< on the device's current stream, without waiting

 private:
  Device device_;
  [[maybe_unused]] void* graph_ = nullptr;  // a cudaGraphExec_t
};

/// Runs `work`, which must not wait for its device and must do the same each time. On a GPU the
/// first run is an ordinary one, the second is recorded, and all from there on are replays on the
/// caller's stream; all of one thread. The memory that `work` takes for itself is kept from
/// everybody else. On the CPU it is called.
class RepeatedWork {
 public:
  RepeatedWork(Device device, std::function<void()> work);
  ~RepeatedWork();
  RepeatedWork(const RepeatedWork&) = delete;
  RepeatedWork& operator=(const RepeatedWork&) = delete;

  /// Throws DeviceError, or what `work` throws.
  void run();

 private:
  Device device_;
  std::function<void()> work_;
  Stream own_;  // where it runs at first, and is recorded; goes after the graph
  bool warm_ = false;
  std::unique_ptr<RecordedWork> recorded_;
};

}  // namespace keel
