// What the emulated GPUs promise to find: each case breaks a rule on purpose.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "../../core/cuda.cuh"
#include "../../core/tensor.h"
#include "cublas_v2.h"
#include "fatal.h"

using namespace keel;

namespace {

void add_one(float* x, int n) {
  const unsigned i = blockIdx.x * 4 + threadIdx.x;
  if (i < static_cast<unsigned>(n)) x[i] += 1;
}

void set_one(float* x, int) { x[blockIdx.x * 4 + threadIdx.x] = 1; }

struct OnDevice {
  cudaStream_t stream = nullptr;
  void* data = nullptr;
  explicit OnDevice(int device = 0, std::size_t bytes = 32) {
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaMallocAsync(&data, bytes, stream) == cudaSuccess);
  }
  ~OnDevice() {
    cudaFreeAsync(data, stream);
    cudaStreamDestroy(stream);
    cudaSetDevice(0);
  }
  float* floats() const { return static_cast<float*>(data); }
};

cudaError_t run_on(const OnDevice& on, unsigned blocks, unsigned threads, int shared = 0,
                   void (*kernel)(float*, int) = add_one) {
  cudaLaunchConfig_t config{};
  config.gridDim.x = blocks;
  config.blockDim.x = threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(shared);
  config.stream = on.stream;
  return cudaLaunchKernelEx(&config, kernel, on.floats(), 8);
}

}  // namespace

TEST_CASE("emulated: a stream's work waits until somebody waits for it") {
  const OnDevice on;
  std::vector<float> host(8, 1), back(8, -1);
  CHECK(cudaMemcpyAsync(on.data, host.data(), 32, cudaMemcpyHostToDevice, on.stream) ==
        cudaSuccess);
  host.assign(8, 5);  // read already
  CHECK(run_on(on, 2, 4) == cudaSuccess);
  CHECK(cudaMemcpyAsync(back.data(), on.data, 32, cudaMemcpyDefault, on.stream) == cudaSuccess);
  CHECK(back == std::vector<float>(8, -1));
  CHECK(cudaStreamSynchronize(on.stream) == cudaSuccess);
  CHECK(back == std::vector<float>(8, 2));
}

TEST_CASE("emulated: the host may not touch a GPU's memory, and nothing is there at first") {
  const OnDevice on;
  CHECK(is_fatal([&] { on.floats()[0] = 1; }));
  CHECK(is_fatal([&] { _exit(std::isnan(on.floats()[0])); }));
  float first = 0;
  cudaMemcpyAsync(&first, on.data, 4, cudaMemcpyDeviceToHost, on.stream);
  cudaStreamSynchronize(on.stream);
  CHECK(std::isnan(first));
}

TEST_CASE("emulated: what is written behind an allocation ends the program when it is freed") {
  CHECK(is_fatal([] {
    OnDevice on(0, 8);
    run_on(on, 2, 4, 0, set_one);  // 32 bytes
    cudaFreeAsync(on.data, on.stream);
    cudaStreamSynchronize(on.stream);
  }));
  CHECK(is_fatal([] {
    OnDevice on;
    cudaFreeAsync(on.floats() + 1, on.stream);
    cudaStreamSynchronize(on.stream);
  }));
}

TEST_CASE("emulated: one GPU's kernel may not touch another's memory") {
  const OnDevice here, there(1);
  CHECK(run_on(here, 2, 4) == cudaErrorInvalidResourceHandle);  // the current one is there's
  CHECK(is_fatal([&] {
    cudaSetDevice(0);
    cudaLaunchConfig_t config{};
    config.gridDim.x = config.blockDim.x = 1;
    config.stream = here.stream;
    cudaLaunchKernelEx(&config, add_one, there.floats(), 1);
    cudaStreamSynchronize(here.stream);
  }));
}

TEST_CASE("emulated: launches that no GPU takes are refused") {
  const OnDevice on;
  CHECK(run_on(on, 0, 4) == cudaErrorInvalidConfiguration);
  CHECK(run_on(on, 1, 1025) == cudaErrorInvalidConfiguration);
  CHECK(run_on(on, 1, 4, (48 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10) ==
        cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 99 << 10) ==
        cudaSuccess);
  CHECK(run_on(on, 1, 4, 99 << 10) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("emulated: a recorded graph runs when it is launched, and recording refuses the rest") {
  const OnDevice on;
  std::vector<float> host(8, 0);
  cudaMemcpyAsync(on.data, host.data(), 32, cudaMemcpyHostToDevice, on.stream);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(run_on(on, 2, 4) == cudaSuccess);
  CHECK(cudaStreamEndCapture(on.stream, &graph) == cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, on.stream) == cudaSuccess);
  cudaMemcpyAsync(host.data(), on.data, 32, cudaMemcpyDeviceToHost, on.stream);
  cudaStreamSynchronize(on.stream);
  CHECK(host == std::vector<float>(8, 3));
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(executable);

  for (const bool waits : {true, false}) {
    void* data = nullptr;
    cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal);
    CHECK((waits ? cudaStreamSynchronize(on.stream) : cudaMallocAsync(&data, 8, on.stream)) ==
          cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(on.stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
  }
  // A product would allocate its workspace while it is recorded, had it not been given one.
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  cublasSetStream(handle, on.stream);
  const float one = 1;
  cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal);
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, on.floats(), 1, on.floats(), 1,
                    &one, on.floats() + 1, 1) == CUBLAS_STATUS_EXECUTION_FAILED);
  cudaStreamEndCapture(on.stream, &graph);
  cudaGraphDestroy(graph);
  delete handle;
  cudaGetLastError();
}

TEST_CASE("emulated: what a pool hands out again holds nothing") {
  const Device gpu = Device::cuda();
  Tensor::full({100}, 1, DType::f32, gpu);
  for (const float x : Tensor::empty({100}, DType::f32, gpu).to_vector<float>())
    CHECK(std::isnan(x));
}

namespace {

// Each thread writes its word, and reads the next one's: with a barrier between, or without.
void next_kernel(bool barrier, float* into) {
  __shared__ float shared[64];
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (barrier) __syncthreads();
  into[blockIdx.x * 64 + threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}
// As the first, in dynamic shared memory, and twice: the second round needs two barriers.
void rounds_kernel(int barriers, float* into) {
  auto* shared = static_cast<float*>(emulated::Block::current().dynamic_shared());
  for (int round = 0; round < 2; ++round) {
    shared[threadIdx.x] = static_cast<float>(threadIdx.x);
    __syncthreads();
    into[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
    if (barriers == 2) __syncthreads();
  }
}
// Some threads add to one word: a write that the compiler knows to be of what was just read.
void adding_kernel(int threads, float* into) {
  if (static_cast<int>(threadIdx.x) < threads) into[0] += 1;
}
// Every block writes its number; one also reads, or writes, its neighbour's.
void blocks_kernel(bool reads, bool writes, float* into) {
  into[blockIdx.x] = 1;
  if (reads && blockIdx.x == 0) into[2] = into[1] + 1;
  if (writes && blockIdx.x == 0) into[1] = 2;
}

void launch_on_gpu(int blocks, int threads, int shared, auto kernel, auto... arguments) {
  const Tensor into = Tensor::zeros({1000}, DType::f32, Device::cuda());
  launch_kernel_shared(Device::cuda(), "test", kernel, blocks, threads, shared, arguments...,
                       into.data<float>());
  synchronize(Device::cuda());
}

}  // namespace

TEST_CASE("emulated: a race in shared memory, or between blocks, ends the program") {
  launch_on_gpu(3, 64, 0, next_kernel, true);
  CHECK(is_fatal([] { launch_on_gpu(3, 64, 0, next_kernel, false); }));
  launch_on_gpu(1, 64, 256, rounds_kernel, 2);
  CHECK(is_fatal([] { launch_on_gpu(1, 64, 256, rounds_kernel, 1); }));
  launch_on_gpu(1, 2, 0, adding_kernel, 1);
  CHECK(is_fatal([] { launch_on_gpu(1, 2, 0, adding_kernel, 2); }));
  launch_on_gpu(2, 1, 0, blocks_kernel, false, false);
  CHECK(is_fatal([] { launch_on_gpu(2, 1, 0, blocks_kernel, true, false); }));
  CHECK(is_fatal([] { launch_on_gpu(2, 1, 0, blocks_kernel, false, true); }));
}

namespace {

// Copies a number to shared memory, and reads it before it waited, and after.
void copying_kernel(const float* from, float* into) {
  __shared__ float shared[2];
  if (threadIdx.x == 0) shared[0] = shared[1] = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    emulated::copy_async(shared, from, 4);
    emulated::commit_copies();
    emulated::copy_async(shared + 1, from, 4);
    emulated::commit_copies();
    into[0] = shared[0];
    emulated::wait_for_copies(1);
    into[1] = shared[0], into[2] = shared[1];
    emulated::wait_for_copies(0);
    into[3] = shared[1];
  }
}

}  // namespace

TEST_CASE("emulated: asynchronous copies arrive when they are waited for") {
  const Tensor from = Tensor::full({1}, 7), into = Tensor::zeros({4});
  launch_kernel(Device(), "test", copying_kernel, 1, 32, from.data<float>(), into.data<float>());
  CHECK(into.to_vector<float>() == std::vector<float>{0, 7, 0, 7});
}

namespace {

// Quarters of a warp: the last leaves, the others exchange numbers, each once more than the one
// before, with lanes at `distance`, and say that `lanes` more of its neighbour take part.
void quarters_kernel(int distance, unsigned lanes, float* into) {
  const unsigned quarter = threadIdx.x / 8, members = (0xffu | lanes << 8) << 8 * quarter;
  if (quarter == 3) return;
  float mine = static_cast<float>(threadIdx.x);
  for (unsigned i = 0; i <= quarter; ++i) mine = 1 + __shfl_xor_sync(members, mine, distance);
  into[threadIdx.x] = mine;
}

}  // namespace

TEST_CASE("emulated: parts of a warp shuffle by themselves, and only with those they name") {
  const Tensor into = Tensor::zeros({32});
  launch_kernel(Device(), "test", quarters_kernel, 1, 32, 5, 0u, into.data<float>());
  const std::vector<float> got = into.to_vector<float>();
  for (unsigned i = 0; i < 24; ++i)
    CHECK(got[i] == static_cast<float>((i / 8 % 2 == 0 ? i ^ 5 : i) + 1 + i / 8));
  for (unsigned i = 24; i < 32; ++i) CHECK(got[i] == 0);
  CHECK(is_fatal([] { launch_on_gpu(1, 32, 0, quarters_kernel, 9, 0u); }));
  CHECK(is_fatal([] { launch_on_gpu(1, 32, 0, quarters_kernel, 5, 1u); }));
}
