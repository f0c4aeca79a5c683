// The laws of groups for a GPU's own, of every size that launches choose, where their threads are
// emulated: test_emulated. group.cpp has them for the CPU's.
#ifdef KEEL_EMULATED_CUDA

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../../kernels/launch.cuh"

using namespace keel;

namespace {

// In this program the CPU's tensors go through a GPU's groups too: every test of kernels/.
[[maybe_unused]] const bool all_tests = emulated::takes_cpu_tensors() = true;

template <class Group, class Body>
void group_kernel(Body body) {
  __shared__ double shared[Group::kWarps > 1 ? Group::kWarps * Group::kMaxSums : 1];
  body(Group(static_cast<int>(threadIdx.x), shared));
}

// Runs body(group) on every member of one group.
template <class Group, class Body>
void with_group(const Body& body) {
  launch_kernel(Device(), "test", group_kernel<Group, Body>, 1, Group::kMembers, body);
}

// Lengths that the group holds, on both sides of its runs, its members and its registers.
template <class Group>
std::vector<int64_t> lengths() {
  const int64_t held = Group::kStreaming ? 5000 : Group::kMembers * Group::kSlots;
  std::vector<int64_t> all;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{127},
                    int64_t{128}, int64_t{129}, int64_t{1001}, held - 1, held})
    if (n <= held && !(Group::kWhole && n % Group::kWide != 0)) all.push_back(n);
  return all;
}

// Row r sums itself r + 1 times.
struct Repeat {
  using Scalar = float;
  static constexpr int kCols = 20;
  const float* x;
  float* into;
  Runs runs() const { return Runs::whole; }
  template <class Group>
  void operator()(Group g, int64_t row) const {
    const auto mine = g.load(kCols, x + row * kCols);
    float sum = 0;
    for (int64_t i = 0; i <= row; ++i) sum += g.sum(kCols, [&](auto at) { return mine[at]; });
    g.once([&] { into[row] = sum; });
  }
};

}  // namespace

using Float = CudaGroup<128, 8, float>;
using Quarter = CudaGroup<8, 16, float>;
using Eighth = CudaGroup<4, 16, float>;
using WholeQuarter = CudaGroup<8, 16, float, Runs::whole>;
using WholeWarp = CudaGroup<32, 32, float, Runs::whole>;
using WholeDoubles = CudaGroup<256, 4, double, Runs::whole>;
using Apart = CudaGroup<32, 32, float, Runs::none>;
using ApartDoubles = CudaGroup<64, 4, double, Runs::none>;
using ApartStreaming = CudaGroup<512, 0, float, Runs::none>;
using WholeStreaming = CudaGroup<512, 0, float, Runs::whole>;
TYPE_TO_STRING_AS("eighth of a warp", Eighth);
TYPE_TO_STRING_AS("quarter of a warp", Quarter);
TYPE_TO_STRING_AS("half a warp", CudaGroup<16, 16, float>);
TYPE_TO_STRING_AS("half a warp of doubles", CudaGroup<16, 4, double>);
TYPE_TO_STRING_AS("2 warps of doubles", CudaGroup<64, 4, double>);
TYPE_TO_STRING_AS("quarter of a warp, whole runs", WholeQuarter);
TYPE_TO_STRING_AS("warp of long rows", CudaGroup<32, 32, float>);
TYPE_TO_STRING_AS("warp of long rows, whole runs", WholeWarp);
TYPE_TO_STRING_AS("8 warps of doubles, whole runs", WholeDoubles);
TYPE_TO_STRING_AS("warp of floats", CudaGroup<32, 4, float>);
TYPE_TO_STRING_AS("warp of doubles", CudaGroup<32, 4, double>);
TYPE_TO_STRING_AS("4 warps of floats", Float);
TYPE_TO_STRING_AS("8 warps of doubles", CudaGroup<256, 4, double>);
TYPE_TO_STRING_AS("16 warps of floats", CudaGroup<512, 8, float>);
TYPE_TO_STRING_AS("16 warps of floats, streaming", CudaGroup<512, 0, float>);
TYPE_TO_STRING_AS("16 warps of doubles, streaming", CudaGroup<512, 0, double>);

TYPE_TO_STRING_AS("warp of long rows, elements apart", Apart);
TYPE_TO_STRING_AS("2 warps of doubles, elements apart", ApartDoubles);
TYPE_TO_STRING_AS("16 warps, elements apart, streaming", ApartStreaming);
TYPE_TO_STRING_AS("16 warps, whole runs, streaming", WholeStreaming);
TYPE_TO_STRING_AS("2 warps of floats", CudaGroup<64, 8, float>);

TEST_CASE_TEMPLATE("laws of a GPU's group", Group, CudaGroup<32, 4, float>,
                   CudaGroup<32, 4, double>, Float, CudaGroup<256, 4, double>,
                   CudaGroup<512, 8, float>, CudaGroup<512, 0, float>, CudaGroup<512, 0, double>,
                   Eighth, CudaGroup<16, 16, float>, CudaGroup<16, 4, double>,
                   CudaGroup<64, 4, double>, Quarter, WholeQuarter, CudaGroup<32, 32, float>,
                   WholeWarp, WholeDoubles, Apart, ApartDoubles, ApartStreaming, WholeStreaming,
                   CudaGroup<64, 8, float>) {
  for (const int64_t n : lengths<Group>())
    // Off by one element: accesses of 16 bytes are not allowed there.
    for (const int64_t offset : {0, 1}) {
      if (Group::kWhole && offset != 0) continue;
      CAPTURE(n);
      CAPTURE(offset);
      const auto size = static_cast<std::size_t>(n + offset);
      std::vector<float> x(size), copied(size, -1), back(size, -1), seen(size, -1),
          changed(size, 200);
      for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i % 97 + 1);
      std::vector<int> calls(size);
      int ran = 0;
      const float* from = x.data() + offset;
      double wanted = 0, largest = -INFINITY;
      for (int64_t i = 0; i < n; ++i) {
        wanted += from[i];
        largest = std::max<double>(largest, from[i]);
      }
      const auto body = [&](Group g) {
        const auto row = g.load(n, from);
        g.store(n, copied.data() + offset, [&](auto i) { return 2 * row[i]; });
        auto sums = g.zeros(n, back.data() + offset);
        g.each(n, [&](auto i) { sums[i] += row[i]; });
        g.each(n, [&](auto i) { sums[i] += copied[offset + i]; });  // law 1
        g.flush(n, sums, back.data() + offset);
        auto taken = g.take(n, changed.data() + offset);
        g.each(n, [&](auto i) { taken[i] -= row[i]; });
        g.flush(n, taken, changed.data() + offset);
        const auto total = g.sum(n, [&](auto i) {
          calls[offset + i] += 1;
          return Sums<double, 2>{{row[i], 3.0 * row[i]}};
        });
        const double most = g.max(n, [&](auto i) { return static_cast<double>(row[i]); });
        const bool right = total[0] == wanted && total[1] == 3 * wanted && most == largest;
        g.each(n, [&](auto i) { seen[offset + i] = right; });  // every member knows
        g.once([&] { ran += right; });
      };
      with_group<Group>(body);
      CHECK(ran == 1);
      for (int64_t i = offset; i < n + offset; ++i) {
        REQUIRE(copied[i] == 2 * x[i]);
        REQUIRE(back[i] == 3 * x[i]);
        REQUIRE(changed[i] == 200 - x[i]);
        REQUIRE(calls[i] == 1);
        REQUIRE(seen[i] == 1);
      }
      if (offset == 1 && size > 0) CHECK(copied[0] == -1);
    }
}

TEST_CASE("parts of a warp work on rows of their own, whatever the others do") {
  constexpr int kRows = 7, kCols = Repeat::kCols;
  alignas(16) float x[kRows * kCols];
  float got[kRows] = {};
  for (int i = 0; i < kRows * kCols; ++i) x[i] = static_cast<float>(i / kCols + 1);
  launch_rows(Device(), kRows, kCols, Repeat{x, got});
  for (int row = 0; row < kRows; ++row) CHECK(got[row] == (row + 1) * (row + 1) * kCols);
}

TEST_CASE("the emulation runs every thread of every block, and shuffles by lane") {
  constexpr int kThreads = 96, kBlocks = 3;
  std::vector<int> got(kThreads * kBlocks, -1);
  int* into = got.data();
  const auto body = [into] {
    const int id = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
    __shared__ int turn[kThreads];
    turn[kThreads - 1 - id] = id;
    __syncthreads();
    into[block * kThreads + id] = __shfl_xor_sync(0xffffffffu, 1000 * block + turn[id], 5);
  };
  launch_kernel(
      Device(), "test", +[](decltype(body) run) { run(); }, kBlocks, kThreads, body);
  for (int block = 0; block < kBlocks; ++block)
    for (int id = 0; id < kThreads; ++id)
      CHECK(got[block * kThreads + id] == 1000 * block + kThreads - 1 - (id ^ 5));
}

#endif
