#include "fused_mlp.h"

#include "../core/cuda.cuh"
#include "fused_mlp_block.h"
#include "fused_mlp_sum.h"

namespace keel {

#ifdef __CUDACC__

namespace {

/// A phase, and the barrier behind it.
template <class Thread>
struct OnGpu {
  Thread& thread;

  template <class Phase>
  KEEL_HD void operator()(Phase phase) const {
    phase(thread);
#ifdef __CUDA_ARCH__
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
#endif
  }
};

template <int kTileRows, bool kKeep>
__global__ void __launch_bounds__(FusedProducts::kThreads, 1)
    gradient_kernel(const __grid_constant__ FusedTask task) {
  extern __shared__ Quad fused_mlp_shared[];
  using Block = FusedBlock<kTileRows, kKeep>;
  typename Block::Thread thread;
  thread.id = static_cast<int>(threadIdx.x);
  Block(task, blockIdx.x, fused_mlp_shared[0].v).run(OnGpu<typename Block::Thread>{thread});
}

__global__ void __launch_bounds__(FusedSum::kThreads)
    sum_kernel(const __grid_constant__ FusedTask task) {
  __shared__ float shared[FusedSum::kShared];
  FusedSum::Thread thread{static_cast<int>(threadIdx.x)};
  FusedSum(task, blockIdx.x, shared).run(OnGpu<FusedSum::Thread>{thread});
}

template <int kTileRows, bool kKeep>
void launch(const FusedTask& task, cudaStream_t stream) {
  const int bytes = task.at.total * static_cast<int>(sizeof(float));
  cuda_check(cudaFuncSetAttribute(gradient_kernel<kTileRows, kKeep>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "fused_mlp: shared memory");
  gradient_kernel<kTileRows, kKeep>
      <<<static_cast<unsigned>(task.slots()), FusedProducts::kThreads, bytes, stream>>>(task);
  cuda_check(cudaGetLastError(), "fused_mlp");
  const int64_t blocks = task.members * FusedSum::member_blocks(task.net);
  sum_kernel<<<static_cast<unsigned>(blocks), FusedSum::kThreads, 0, stream>>>(task);
  cuda_check(cudaGetLastError(), "fused_mlp: sum");
}

}  // namespace

void fused_mlp(const FusedTask& task, Device device) {
  check<DeviceError>(device.is_cuda(), "fused_mlp", "got {}, wanted a GPU", device);
  const int64_t blocks = task.members * FusedSum::member_blocks(task.net);
  check(blocks < (int64_t{1} << 31), "fused_mlp", "got {} blocks, wanted less than 2^31", blocks);
  cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
  const cudaStream_t stream = stream_of(device);
  if (task.tile_rows == 64)
    task.keep ? launch<64, true>(task, stream) : launch<64, false>(task, stream);
  else
    task.keep ? launch<32, true>(task, stream) : launch<32, false>(task, stream);
}

#else

void fused_mlp(const FusedTask&, Device device) {
  fail<DeviceError>("fused_mlp", "got {} in a build without CUDA, wanted a GPU", device);
}

#endif

}  // namespace keel
