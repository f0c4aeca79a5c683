#include "fused_mlp.h"

#include "../core/cuda.cuh"
#include "block_phases.h"
#include "fused_mlp_block.h"
#include "fused_mlp_sum.h"

namespace keel {

#ifdef KEEL_DEVICE_CODE

namespace {

template <int kTileRows, bool kKeep, bool kPlain>
__global__ void __launch_bounds__(FusedProducts::kThreads, 1)
    gradient_kernel(const __grid_constant__ FusedTask task) {
#ifdef KEEL_EMULATED_CUDA
  auto* const fused_mlp_shared = static_cast<Quad*>(emulated::Block::current().dynamic_shared());
#else
  extern __shared__ Quad fused_mlp_shared[];
#endif
  using Block = FusedBlock<kTileRows, kKeep, kPlain>;
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
void launch_gradient(const FusedTask& task, Device device) {
  const auto launch = [&](auto kernel) {
    launch_kernel_shared(device, "fused_mlp", kernel, task.slots(), FusedProducts::kThreads,
                         task.at.total * static_cast<int>(sizeof(float)), task);
  };
  task.net.plain() ? launch(gradient_kernel<kTileRows, kKeep, true>)
                   : launch(gradient_kernel<kTileRows, kKeep, false>);
}

}  // namespace

void fused_mlp(const FusedTask& task, Device device) {
  check<DeviceError>(device.is_cuda(), "fused_mlp", "got {}, wanted a GPU", device);
  check(task.keep || task.tile_rows == 32, "fused_mlp",
        "got tiles of {} rows that keep no weights, wanted of 32", task.tile_rows);
  if (task.tile_rows == 64)
    launch_gradient<64, true>(task, device);
  else
    task.keep ? launch_gradient<32, true>(task, device) : launch_gradient<32, false>(task, device);
  launch_kernel(device, "fused_mlp: sum", sum_kernel, FusedSum::blocks(task), FusedSum::kThreads,
                task);
}

#else

void fused_mlp(const FusedTask&, Device device) {
  fail<DeviceError>("fused_mlp", "got {} in a build without CUDA, wanted a GPU", device);
}

#endif

}  // namespace keel
