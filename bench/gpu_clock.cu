// Times by a GPU's own clock.
#include <algorithm>
#include <chrono>
#include <thread>

#include "../core/cuda.cuh"
#include "bench.h"

namespace keel::bench {

#ifdef KEEL_WITH_CUDA
namespace {

// A point in a stream's time.
class Mark {
 public:
  Mark() { cuda_check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Mark() { cudaEventDestroy(event_); }  // unchecked: destructors do not throw
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  void set(Device device) {
    cuda_check(cudaEventRecord(event_, stream_of(device)), "cudaEventRecord");
  }
  double seconds_since(const Mark& earlier) const {
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// What a stream waits for.
void sleep(void* seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(*static_cast<double*>(seconds)));
}

}  // namespace
#endif

std::optional<double> by_clock_of_gpu([[maybe_unused]] Device device,
                                      [[maybe_unused]] const std::function<void()>& f) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cpu()) return {};
  f();
  synchronize(device);
  const bool once = measures_once();
  constexpr int kTrials = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < kTrials; ++call) f();
  const std::chrono::duration<double> queued = std::chrono::steady_clock::now() - start;
  synchronize(device);
  const double host = queued.count() / kTrials;
  // The stream is kept waiting until all calls are queued: the host's time for them does not count.
  // As many as take it 5 ms, and fewer than fill the queue.
  const int calls = once ? 1 : static_cast<int>(std::clamp(5e-3 / host, 1.0, 100.0));
  double pause = once ? 0 : 1.5 * host * calls + 2e-4;
  Mark begin, end;
  std::vector<double> times;
  while (times.size() < (once ? 1 : 20)) {
    cuda_check(cudaLaunchHostFunc(stream_of(device), sleep, &pause), "cudaLaunchHostFunc");
    begin.set(device);
    for (int call = 0; call < calls; ++call) f();
    end.set(device);
    synchronize(device);
    times.push_back(end.seconds_since(begin) / calls);
  }
  return summary(times).median;
#else
  return {};
#endif
}

}  // namespace keel::bench
