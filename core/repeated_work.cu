#include "repeated_work.h"

#include <utility>

#include "cuda.cuh"
#include "memory.h"

namespace keel {

#ifdef KEEL_WITH_CUDA

RecordedWork::RecordedWork(Device gpu, const std::function<void()>& work) : device_(gpu) {
  const cudaStream_t stream = stream_of(gpu);
  cuda_check(cudaSetDevice(gpu.index()), "cudaSetDevice");
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);  // unchecked: the first problem is the one to report
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();  // nor is it anybody else's, later
    throw;
  }
  cuda_check(cudaStreamEndCapture(stream, &graph), "end capture");
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  if (status == cudaErrorMemoryAllocation) {  // of CUDA's own, beside which the pool may wait
    cudaGetLastError();
    trim_memory(gpu);
    status = cudaGraphInstantiate(&executable, graph, 0);
  }
  if (cudaGraphDestroy(graph) != cudaSuccess) cudaGetLastError();
  cuda_check(status, "instantiate graph");
  graph_ = executable;
}

RecordedWork::~RecordedWork() {
  if (graph_ && cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph_)) != cudaSuccess)
    cudaGetLastError();  // unchecked, and nobody else's later
}

void RecordedWork::replay() {
  cuda_check(cudaSetDevice(device_.index()), "cudaSetDevice");
  cuda_check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph_), stream_of(device_)),
             "launch graph");
}

#else

RecordedWork::RecordedWork(Device gpu, const std::function<void()>&) : device_(gpu) {
  fail<DeviceError>("record", "got {}, wanted a GPU: {}", gpu, why_no_cuda());
}
RecordedWork::~RecordedWork() = default;
void RecordedWork::replay() {}

#endif

RepeatedWork::RepeatedWork(Device device, std::function<void()> work)
    : device_(device), work_(std::move(work)), own_(device) {}

RepeatedWork::~RepeatedWork() {
  if (!recorded_) return;
  try {
    synchronize(device_);  // the last replay still writes to what own_ is about to give back
  } catch (const Error&) {
    // Whoever waits for the device next hears of it.
  }
}

void RepeatedWork::run() {
  if (device_.is_cpu()) return work_();
  if (!recorded_) {
    const StreamScope scope(own_);
    if (warm_)
      recorded_ = std::make_unique<RecordedWork>(device_, work_);
    else
      work_();
  }
  if (std::exchange(warm_, true)) recorded_->replay();
}

}  // namespace keel
