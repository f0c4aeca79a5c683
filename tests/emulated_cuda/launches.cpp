// Graphs and launches.
#include <map>
#include <utility>

#include "ptx/library.h"
#include "state.h"

namespace keel::emulated {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream) || stream->recorded) return result(cudaErrorInvalidResourceHandle);
  stream->recorded = new Graph();
  stream->spoilt = false;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream) && !at_once(stream)) return result(cudaErrorInvalidResourceHandle);
  *status = known(stream) && stream->recorded ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream) || !stream->recorded) return result(cudaErrorInvalidResourceHandle);
  *graph = std::exchange(stream->recorded, nullptr);
  if (!stream->spoilt) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return result(cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (!graph) return result(cudaErrorInvalidValue);
  *executable = new Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(driver_mutex());
  if (!known(stream) || !executable) return result(cudaErrorInvalidResourceHandle);
  for (const Work& work : executable->nodes) enqueue(*stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }

namespace {
std::map<const void*, int>& most_shared() {
  static auto* all = new std::map<const void*, int>();
  return *all;
}
}  // namespace

// What a block may have besides its 48 KiB on the generation that is emulated.
cudaError_t set_most_shared(const void* kernel, int bytes) {
  const std::lock_guard lock(driver_mutex());
  const int most = capability().major >= 9 ? 227 << 10 : 99 << 10;
  if (bytes < 0 || bytes > most) return result(cudaErrorInvalidValue);
  most_shared()[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, Work body,
                   std::vector<std::string> arguments) {
  const std::lock_guard lock(driver_mutex());
  Stream* stream = config.stream;
  if (!at_once(stream) && (!known(stream) || stream->device != current_device()))
    return result(cudaErrorInvalidResourceHandle);
  const unsigned blocks = config.gridDim.x, threads = config.blockDim.x;
  if (blocks == 0 || blocks >= 1u << 31 || threads == 0 || threads > 1024)
    return result(cudaErrorInvalidConfiguration);
  const auto found = most_shared().find(kernel);
  const int allowed = found == most_shared().end() ? 48 << 10 : found->second;
  if (config.dynamicSmemBytes > static_cast<std::size_t>(allowed))
    return result(cudaErrorInvalidValue);
  const ptx::Kernel* by_nvcc = ptx::find_kernel(kernel);
  const Work grid = [=, bytes = config.dynamicSmemBytes] {
    Traffic::begin_launch(kernel);
    if (by_nvcc) return ptx::run_grid(*by_nvcc, blocks, threads, bytes, arguments);
    Block::run_grid(blocks, threads, bytes, body);
  };
  if (at_once(stream))
    grid();
  else
    enqueue(*stream, grid);
  return cudaSuccess;
}

}  // namespace keel::emulated
