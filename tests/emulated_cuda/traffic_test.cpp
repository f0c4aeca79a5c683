// What traffic.h counts: kernels of known cost, then the hot ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "../../core/cuda.cuh"
#include "../../core/tensor.h"
#include "ptx/library.h"
#include "traffic.h"
#include "traffic_works.h"

using namespace keel;
using emulated::KernelTraffic;
using emulated::Requests;
using emulated::Space;
using emulated::Traffic;
namespace ptx = emulated::ptx;

namespace {

struct alignas(16) Four {
  float v[4];
};

float total(float x) { return x; }
float total(double x) { return static_cast<float>(x); }
[[maybe_unused]] float total(Four x) { return x.v[0] + x.v[1] + x.v[2] + x.v[3]; }

// One warp: lane l loads element step l, and stores it beside its neighbours'.
void strided_kernel(int step, const float* from, float* into) {
  into[threadIdx.x] = from[threadIdx.x * static_cast<unsigned>(step)];
}
[[maybe_unused]] void wide_kernel(const Four* from, Four* into) {
  const Four four = from[threadIdx.x];
  into[threadIdx.x] = four;
}
// Two warps: each fills its tile [32, width] row by row, and lane l reads element step l.
template <class T>
void shared_kernel(int step, float* into) {
  alignas(16) __shared__ T shared[32 * 33];
  for (unsigned i = threadIdx.x; i < 32 * 33; i += 64) shared[i] = T{};
  __syncthreads();
  into[threadIdx.x] = total(shared[threadIdx.x % 32 * static_cast<unsigned>(step)]);
}

// The odd lanes only, and those twice: a GPU masks the others out.
void masked_kernel(float* into) {
  for (unsigned i = 0; i < threadIdx.x % 2 * 2; ++i) into[threadIdx.x * 2 + i] = 1;
}

template <class... Parameters, class... Arguments>
KernelTraffic run(void (*kernel)(Parameters...), int threads, Arguments... arguments) {
  const Device gpu = Device::cuda();
  synchronize(gpu);  // what made the arguments
  const auto kernels = Traffic::of([&] {
    launch_kernel(gpu, "test", kernel, 1, threads, arguments...);
    synchronize(gpu);
  });
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].kernel == reinterpret_cast<const void*>(kernel));
  return kernels[0];
}

void check_cost(const Requests& counted, std::int64_t requests, std::int64_t cost,
                std::int64_t fewest) {
  CHECK(counted.requests == requests);
  CHECK(counted.cost == cost);
  CHECK(counted.fewest == fewest);
}

}  // namespace

TEST_CASE("traffic: sectors of device memory") {
  const Device gpu = Device::cuda();
  const Tensor from = Tensor::zeros({1024}, DType::f32, gpu), into = from.clone();
  const auto strided = [&](int step, int offset) {
    return run(strided_kernel, 32, step, from.data<float>() + offset, into.data<float>());
  };
  for (const std::array<int, 4>& known :
       {std::array{1, 0, 4, 4}, {1, 1, 5, 4}, {2, 0, 8, 4}, {8, 0, 32, 4}, {0, 0, 1, 1}}) {
    const int step = known[0], offset = known[1], sectors = known[2], fewest = known[3];
    CAPTURE(step);
    CAPTURE(offset);
    const KernelTraffic traffic = strided(step, offset);
    check_cost(traffic.total(Space::device, false), 1, sectors, fewest);
    check_cost(traffic.total(Space::device, true), 1, 4, 4);
    CHECK(traffic.loaded == 32 * sectors);
    CHECK(traffic.stored == 128);
    CHECK(traffic.total(Space::device, false).lanes == 32);
  }
#ifndef __clang__
  const KernelTraffic wide = run(wide_kernel, 32, reinterpret_cast<const Four*>(from.data<float>()),
                                 reinterpret_cast<Four*>(into.data<float>()));
  check_cost(wide.total(Space::device, false), 1, 16, 16);
  check_cost(wide.total(Space::device, true), 1, 16, 16);
#endif
  const Requests masked = run(masked_kernel, 32, into.data<float>()).total(Space::device, true);
  check_cost(masked, 2, 16, 4);
  CHECK(masked.lanes == 32);
}

TEST_CASE("traffic: passes over the banks of shared memory") {
  const Tensor into = Tensor::zeros({64}, DType::f32, Device::cuda());
  const auto loads = [&](auto word, int step) {
    const auto kernel = shared_kernel<decltype(word)>;
    return run(kernel, 64, step, into.data<float>()).total(Space::shared, false);
  };
  // Of each of two warps. A column of a tile 32 wide, and of one 33 wide; one word for all.
  check_cost(loads(0.0f, 1), 2, 2, 2);
  check_cost(loads(0.0f, 32), 2, 64, 2);
  check_cost(loads(0.0f, 33), 2, 2, 2);
  check_cost(loads(0.0f, 0), 2, 2, 2);
  check_cost(loads(0.0f, 2), 2, 4, 2);
  check_cost(loads(0.0, 1), 2, 4, 4);
  check_cost(loads(0.0, 2), 2, 8, 4);
#ifndef __clang__
  check_cost(loads(Four{}, 1), 2, 8, 8);
  check_cost(loads(Four{}, 8), 2, 64, 8);
  check_cost(loads(Four{}, 0), 2, 8, 8);
  CHECK(loads(Four{}, 1).paired == 8);
  CHECK(loads(Four{}, 0).paired == 4);
  const KernelTraffic traffic = run(shared_kernel<float>, 64, 1, into.data<float>());
  check_cost(traffic.total(Space::shared, true), 33, 33, 33);  // clang's memset is not heard
#endif
}

#ifndef __clang__  // which takes sixteen bytes apart, and puts neighbours together

namespace {

void check_space(const KernelTraffic& kernel, Space space, double loads, double stores) {
  for (const bool writes : {false, true}) {
    const Requests r = kernel.total(space, writes);
    CAPTURE(writes);
    CHECK(static_cast<double>(r.cost) <= (writes ? stores : loads) * static_cast<double>(r.fewest));
  }
}

// At most so many times the least, of device and of shared memory.
void check_kernel(const KernelTraffic& kernel, double device = 1, double shared = 1) {
  check_space(kernel, Space::device, device, device);
  check_space(kernel, Space::shared, shared, shared);
}

}  // namespace

namespace {

bool runs_nvcc() {
  const char* folder = std::getenv("KEEL_EMULATED_PTX");
  return folder && *folder;
}

}  // namespace

TEST_CASE("traffic: what streams touches the sectors it needs, once") {
  std::vector<traffic_works::Work> works = traffic_works::maps();
  for (const std::int64_t cols : {64, 128, 256, 768, 4096}) {
    const std::int64_t rows = cols == 4096 ? 4 : 64;
    const traffic_works::Work forward = traffic_works::layer_norm_forward(rows, cols);
    const KernelTraffic kernel = traffic_works::counted(forward).at(0);
    CHECK(kernel.loaded + kernel.stored ==
          8 * rows * cols + 8 * std::max<std::int64_t>(rows, 8) + 8 * cols);
    // Eight, four or two rows of a warp read their first elements once more, from as many sectors.
    check_kernel(kernel, cols == 64 ? 1.1 : cols == 128 ? 1.04 : cols == 256 ? 1.02 : 1);
    works.push_back(traffic_works::layer_norm_backward(rows, cols));
  }
  for (const traffic_works::Work& work : works) {
    CAPTURE(work.label);
    const auto kernels = traffic_works::counted(work);
    REQUIRE(!kernels.empty());
    const bool two_rows_a_warp = work.label == "layer_norm_relu backward, 64 x 64";
    for (const KernelTraffic& kernel : kernels) check_kernel(kernel, two_rows_a_warp ? 1.1 : 1);
  }
}

TEST_CASE("traffic: rows that begin anywhere take few more sectors than they have") {
  // 32 floats that begin anywhere lie in five sectors in place of four, if not in four.
  for (const std::int64_t cols : {65, 769})
    for (const auto& work : {traffic_works::layer_norm_forward(64, cols),
                             traffic_works::layer_norm_backward(64, cols)}) {
      CAPTURE(work.label);
      check_kernel(traffic_works::counted(work).at(0), 1.25);
    }
  check_kernel(traffic_works::counted(traffic_works::gather(500, 9)).at(0));
  for (const traffic_works::Work& work : traffic_works::triangles(128)) {
    CAPTURE(work.label);
    check_kernel(traffic_works::counted(work).at(0));
  }
}

TEST_CASE("traffic: short rows of Layer Norm take few of nvcc's instructions" *
          doctest::skip(!runs_nvcc())) {
  // While an H200's memory moves a row of 128 four schedulers issue 200 forward and 300 backward:
  // memory binds, with room, as long as there are fewer; of 64 and of 256 columns in proportion.
  const std::int64_t rows = 64;
  const auto per_row = [&](const traffic_works::Work& work) {
    const ptx::Kernel* by_nvcc = ptx::find_kernel(traffic_works::counted(work).at(0).kernel);
    REQUIRE(by_nvcc);
    by_nvcc->issued = {};
    traffic_works::counted(work);
    const auto issued = std::exchange(by_nvcc->issued, {});
    return std::accumulate(issued.begin(), issued.end(), std::int64_t{0}) / rows;
  };
  struct Most {
    std::int64_t cols, forward, backward;
  };
  for (const Most& most : {Most{64, 50, 110}, {128, 100, 220}, {256, 200, 330}}) {
    const std::int64_t cols = most.cols;
    const std::int64_t forward = per_row(traffic_works::layer_norm_forward(rows, cols));
    const std::int64_t backward = per_row(traffic_works::layer_norm_backward(rows, cols));
    CAPTURE(cols);
    CAPTURE(forward);
    CAPTURE(backward);
    CHECK(forward > cols * 10 / 32);  // each element's own arithmetic
    CHECK(forward < most.forward);
    CHECK(backward > cols * 15 / 32);
    CHECK(backward < most.backward);
  }
}

TEST_CASE("traffic: the Gram matrix reads shared memory without conflicts") {
  for (const int capability : {86, 90}) {
    CAPTURE(capability);
    const auto kernels = traffic_works::counted(traffic_works::gram(256, capability));
    REQUIRE(kernels.size() == 2);  // packs panels, contracts
    const KernelTraffic& contraction = kernels[1];
    check_space(contraction, Space::device, 1, 1.2);  // the diagonal's tiles end within sectors
    check_space(contraction, Space::shared, 1, 1);
    CHECK(contraction.total(Space::shared, false).bytes > 0);
  }
}

TEST_CASE("traffic: fused_mlp has few conflicts in shared memory") {
  // Stores of products meet in pairs; they are more of all where no norm stores anything.
  const auto check_work = [](const traffic_works::Work& work, double stores) {
    CAPTURE(work.label);
    const auto kernels = traffic_works::counted(work);
    REQUIRE(kernels.size() == 2);
    check_space(kernels[0], Space::device, 1.01, 1);
    check_space(kernels[0], Space::shared, 1.01, stores);
    check_kernel(kernels[1], 1.05);
  };
  check_work(traffic_works::fused("ensemble", 1, 2, 100, 32), 1.25);
  check_work(traffic_works::fused("ensemble", 1, 2, 100, 64, true), 1.25);
  check_work(traffic_works::fused("protein", 9, 1, 320, 64), 1.25);
  check_work(traffic_works::fused_gelu(true), 1.25);
  check_work(traffic_works::fused_gelu(false), 1.35);
}

#endif
