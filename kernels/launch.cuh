// Launchers: run a Program for every row, tile of columns, run of elements, or tile of pairs, on
// the device its tensors live on. Grids, streams, row guards and the launch check live here.
//
//   launch_rows(device, rows, cols, program)          program(g, row)
//   launch_chunks(device, chunks, chunk_rows, cols, program)   program(g, chunk)
//   launch_columns(device, rows, cols, program)       program(g, row, first, count)
//   launch_elements(device, n, program)               program(g, first, count)
//   launch_pairs(device, rows, cols, program)         program(g, i, first_j, count)
//
// A Program names the type it computes in as Scalar: a GPU's registers hold half as many doubles.
// One of rows may say how long they can be (kNarrowest, kWidest: no kernel is compiled that no test
// could run), that it reads them more than once (kRereads: it also has groups for up to 64, 256,
// 512 and 2048 columns), that it keeps few rows in registers, so that a thread may hold 16 elements
// of one (kLongRuns), how many blocks of 128 threads a multiprocessor is to hold where a thread has
// four elements of a row (kWarpBlocks), and whether rows are whole runs of sixteen bytes (runs(),
// group.h): a GPU has a kernel for those, and one for others, whose threads own elements one by
// one. A Program whose rows lie apart, or are read past its group (kApart), has the latter alone,
// any other one that asks where a row begins.
#pragma once

#include <algorithm>

#include "../core/cuda.cuh"
#include "../core/device.h"
#include "group.cuh"
#include "launch_cpu.h"
#include "tiling.h"

namespace keel {
namespace detail {

#ifdef KEEL_DEVICE_CODE

// Groups within a warp share a block; barriers need one of their own.
template <class Group>
inline constexpr int kGroupsPerBlock = Group::kWarps > 1 ? 1 : 128 / Group::kMembers;

// Blocks that a multiprocessor is to hold at least: what registers there are, divided by them.
// Not where a thread has eight elements of a row: it would spill.
template <class Group, class Program>
inline constexpr int kFewestBlocks = Group::kMembers <= 32 && Group::kSlots <= 4
                                         ? warp_blocks<Program>()
                                         : 0;

template <class Group, class Program>
__global__ void __launch_bounds__(Group::kMembers* kGroupsPerBlock<Group>,
                                  kFewestBlocks<Group, Program>)
    tile_kernel(const Program program, const Tiling tiling) {
  __shared__ double shared[Group::kWarps > 1 ? Group::kWarps * Group::kMaxSums : 1];
  const int64_t tile =
      static_cast<int64_t>(blockIdx.x) * kGroupsPerBlock<Group> + threadIdx.x / Group::kMembers;
  if (tile >= tiling.tiles()) return;  // whole groups leave together
  run_tile(program, Group(threadIdx.x % Group::kMembers, shared), tiling, tile);
}

template <class Group, class Program>
void launch_with(Device device, const Tiling& tiling, const Program& program) {
  constexpr int kGroups = kGroupsPerBlock<Group>;
  const int64_t blocks = (tiling.tiles() + kGroups - 1) / kGroups;
  launch_kernel(device, "launch", tile_kernel<Group, Program>, blocks, Group::kMembers * kGroups,
                program, tiling);
}

// A group's size follows the row's: eight elements a thread keep even a backward's eight rows
// within registers, half as many where they are doubles. A Program of few rows of float32 holds
// more of each: there are fewer threads to repeat what all of a row do, and to exchange sums. Not
// more than 16, though: with 32 an H100 has half as many warps, and waits (rows of 288, 769 and
// 1280 took 1.3, 1.2 and 1.3 times as long).
// Programs that reread their rows, Layer Norm, have groups between: where half the threads had no
// element of a row, a multiprocessor took longer to issue instructions than memory takes. Of many
// rows in registers a block of 512 threads is the only one on a multiprocessor, and waits as one at
// each barrier: two of 256 take turns. Where elements are one by one, few threads would ask for
// less than a sector at a time.
template <Runs kRuns, int kNarrowest, int kWidest, class Program>
void launch_held(Device device, const Tiling& tiling, const Program& program) {
  using Scalar = typename Program::Scalar;
  constexpr int kDoubled = sizeof(Scalar) / 4;
  constexpr bool kLong = kLongRuns<Program> && kDoubled == 1;
  constexpr int kSlots = kLong ? 16 : 8 / kDoubled;
  constexpr bool kPacked = kLong && kRuns != Runs::none;
  constexpr int kNarrow = kPacked ? 16 : 4;
  constexpr int kMiddle = kPacked ? 16 : 8 / kDoubled;
  constexpr bool kBetween = kRereads<Program>;
  constexpr int kHeld = kWidestHeld<Program>;
  constexpr bool kSteps = has_steps<Program>();
  if constexpr (kBetween && kNarrowest <= 64)
    if (tiling.width <= 64)
      return launch_with<CudaGroup<64 / kNarrow, kNarrow, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kNarrowest <= 128)
    if (tiling.width <= 128)
      return launch_with<CudaGroup<128 / kNarrow, kNarrow, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kBetween && kWidest > 128)
    if (tiling.width <= 256)
      return launch_with<CudaGroup<256 / kMiddle, kMiddle, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kSteps && kWidest > 256)
    if (tiling.width <= 512)
      return launch_with<CudaGroup<512 / kSlots, kSlots, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kWidest > 128)
    if (tiling.width <= 1024)
      return launch_with<CudaGroup<1024 / kSlots, kSlots, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kSteps && kHeld > 2048)
    if (tiling.width <= 2048)
      return launch_with<CudaGroup<2048 / kSlots, kSlots, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kWidest > 1024 && kHeld > 1024)
    if (tiling.width <= kHeld)
      return launch_with<CudaGroup<kHeld / kSlots, kSlots, Scalar, kRuns>>(device, tiling, program);
  if constexpr (kWidest > kHeld)
    launch_with<CudaGroup<512, 0, Scalar, kRuns>>(device, tiling, program);
}

template <int kNarrowest, int kWidest, class Program>
void launch_cuda(Device device, const Tiling& tiling, const Program& program) {
  check(tiling.width >= kNarrowest && tiling.width <= kWidest, "launch",
        "got rows of {}, wanted {} to {}", tiling.width, kNarrowest, kWidest);
  if constexpr (requires { program.runs(); }) {
    if (program.runs() == Runs::whole)
      return launch_held<Runs::whole, kNarrowest, kWidest>(device, tiling, program);
    launch_held<Runs::none, kNarrowest, kWidest>(device, tiling, program);
  } else {
    constexpr Runs kRuns = is_apart<Program>() ? Runs::none : Runs::some;
    launch_held<kRuns, kNarrowest, kWidest>(device, tiling, program);
  }
}

#endif

template <int kNarrowest, int kWidest, class Program>
void launch_tiles(Device device, const Tiling& tiling, const Program& program) {
  if (tiling.rows == 0 || tiling.cols == 0) return;
#ifdef KEEL_DEVICE_CODE
  if (runs_device_code(device)) return launch_cuda<kNarrowest, kWidest>(device, tiling, program);
#endif
  check<DeviceError>(device.is_cpu(), "launch", "got {} in a build without CUDA", device);
  launch_cpu(tiling, program);
}

}  // namespace detail

/// program(g, row) for each row; cols says how long the rows are that it will load.
template <class Program>
void launch_rows(Device device, int64_t rows, int64_t cols, const Program& program) {
  detail::launch_tiles<detail::narrowest<Program>(), detail::widest<Program>()>(
      device, {rows, cols, cols}, detail::RowProgram<Program>{program});
}

/// program(g, chunk) for each chunk, a chunk standing for chunk_rows rows of cols elements.
template <class Program>
void launch_chunks(Device device, int64_t chunks, int64_t chunk_rows, int64_t cols,
                   const Program& program) {
  detail::launch_tiles<detail::narrowest<Program>(), detail::widest<Program>()>(
      device, {chunks, cols, cols, chunks * chunk_rows * cols},
      detail::RowProgram<Program>{program});
}

/// program(g, row, first, count) for tiles of at most 128 columns: sums down columns, say.
template <class Program>
void launch_columns(Device device, int64_t rows, int64_t cols, const Program& program) {
  detail::launch_tiles<1, 128>(device, {rows, cols, std::min<int64_t>(128, cols)}, program);
}

/// program(g, first, count) for runs of at most 1024 of n elements: plain maps.
template <class Program>
void launch_elements(Device device, int64_t n, const Program& program) {
  detail::launch_tiles<1024, 1024>(device, {1, n, 1024}, detail::ElementProgram<Program>{program});
}

/// program(g, i, first_j, count) for tiles of pairs (i, j) of an [rows, cols] matrix: at most 256,
/// or on a GPU the 128 that a warp holds.
template <class Program>
void launch_pairs(Device device, int64_t rows, int64_t cols, const Program& program) {
  detail::launch_tiles<1, 128>(device, {rows, cols, runs_device_code(device) ? 128 : kCpuPairs},
                               program);
}

}  // namespace keel
