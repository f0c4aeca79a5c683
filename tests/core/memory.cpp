#include "../../core/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace keel;

// Says so by the test's name.
static bool no_gpu() {
  if (cuda_device_count() == 0) MESSAGE("skipped: no GPU is visible");
  return cuda_device_count() == 0;
}

constexpr Device kCpu = Device::cpu();
constexpr std::size_t kMiB = std::size_t{1} << 20;

static std::size_t in_use() { return memory_stats(kCpu).in_use; }

TEST_CASE("blocks are aligned and as large as asked for") {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{65},
                            std::size_t{1000}, 3 * kMiB + 1, 65 * kMiB + 1}) {
    CAPTURE(bytes);
    const Storage storage(kCpu, bytes);
    REQUIRE(storage.data() != nullptr);
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    CHECK(address % 64 == 0);
    if (bytes >= 4 * kMiB) CHECK(address % (2 * kMiB) == 0);  // huge pages fit
    CHECK(storage.device() == kCpu);
    std::memset(storage.data(), 0x5a, bytes);  // the address sanitizer watches the last byte
  }
  trim_memory(kCpu);
}

TEST_CASE("a storage counts its handles") {
  const std::size_t before = in_use();
  Storage empty;
  CHECK_FALSE(empty);
  CHECK_FALSE(empty.unique());
  CHECK(empty.data() == nullptr);
  {
    Storage a(kCpu, 1000);
    CHECK(a);
    CHECK(a.unique());
    const std::size_t one = in_use() - before;
    {
      const Storage b = a;
      CHECK(a == b);
      CHECK_FALSE(a.unique());
      CHECK_FALSE(b.unique());
      CHECK(in_use() - before == one);
    }
    CHECK(a.unique());

    void* data = a.data();
    Storage moved = std::move(a);
    CHECK_FALSE(a);
    CHECK(moved.unique());
    CHECK(moved.data() == data);

    Storage other(kCpu, 1000);
    CHECK(in_use() - before == 2 * one);
    CHECK(other.data() != data);
    other = moved;  // its own block is freed
    CHECK(in_use() - before == one);
    CHECK(other == moved);
    other = *&other;
    CHECK(other.data() == data);
    moved = Storage();
    CHECK(other.unique());
  }
  CHECK(in_use() == before);
}

TEST_CASE("repeated requests of one size are served from the pool") {
  trim_memory(kCpu);  // of what other cases left
  void* first = Storage(kCpu, 123456).data();
  const auto warm = memory_stats(kCpu).system_allocations;
  for (int i = 0; i < 100; ++i) {
    const Storage again(kCpu, 123456);
    CHECK(again.data() == first);
  }
  CHECK(memory_stats(kCpu).system_allocations == warm);
  CHECK(Storage(kCpu, 123456 - 100).data() == first);  // of the same size class
  CHECK(memory_stats(kCpu).system_allocations == warm);

  const Storage held(kCpu, 123456), more(kCpu, 123456);
  CHECK(held.data() != more.data());
  CHECK(memory_stats(kCpu).system_allocations == warm + 1);
}

TEST_CASE("peak, cached and trim tell what is held") {
  trim_memory(kCpu);
  reset_peak(kCpu);
  const MemoryStats start = memory_stats(kCpu);
  CHECK(start.cached == 0);
  CHECK(start.peak_in_use == start.in_use);
  {
    const Storage a(kCpu, kMiB);
    { const Storage b(kCpu, 2 * kMiB); }
    const MemoryStats now = memory_stats(kCpu);
    CHECK(now.in_use == start.in_use + kMiB);
    CHECK(now.peak_in_use == start.in_use + 3 * kMiB);
    CHECK(now.cached == 2 * kMiB);
    CHECK(now.system_allocations == start.system_allocations + 2);

    trim_memory(kCpu);
    CHECK(memory_stats(kCpu).cached == 0);
    CHECK(memory_stats(kCpu).in_use == start.in_use + kMiB);
    CHECK(memory_stats(kCpu).peak_in_use == start.in_use + 3 * kMiB);
    reset_peak(kCpu);
    CHECK(memory_stats(kCpu).peak_in_use == start.in_use + kMiB);
  }
  CHECK(memory_stats(kCpu).in_use == start.in_use);
  CHECK(memory_stats(kCpu).cached == kMiB);
}

TEST_CASE("rounding up wastes an eighth at most, and 2 MiB at most for large blocks") {
  std::vector<std::size_t> sizes = {0, 1, 64, 65, 100, 129, 1000, 12345};
  for (std::size_t power = 256; power <= 128 * kMiB; power *= 4)
    sizes.insert(sizes.end(), {power - 1, power, power + 1, power + power / 2 + 1});
  for (std::size_t bytes : sizes) {
    CAPTURE(bytes);
    const std::size_t before = in_use();
    const Storage storage(kCpu, bytes);
    const std::size_t held = in_use() - before;
    REQUIRE(held >= bytes);
    const std::size_t waste = held - bytes;
    CHECK(waste <= (bytes > 64 * kMiB ? 2 * kMiB : std::max<std::size_t>(64, bytes / 8)));
  }
  trim_memory(kCpu);
}

TEST_CASE("memory that is not there is refused with numbers and advice") {
  trim_memory(kCpu);
  { const Storage waits(kCpu, 8 * kMiB); }
  const MemoryStats before = memory_stats(kCpu);
  REQUIRE(before.cached >= 8 * kMiB);
  const auto [total, free] = std::pair(describe(kCpu).total_bytes, describe(kCpu).free_bytes);
  const std::size_t absurd[] = {free + (total - free) / 2,  // Linux would promise it
                                2 * total,
                                std::size_t{1} << 50,
                                ~std::size_t{0} - 4 * kMiB,
                                ~std::size_t{0} - 1,
                                ~std::size_t{0}};
  for (std::size_t bytes : absurd) {
    CAPTURE(bytes);
    bool refused = false;
    try {
      const Storage storage(kCpu, bytes);
    } catch (const OutOfMemory& error) {
      refused = true;
      CHECK(error.tag() == "memory");
      CHECK(error.needed() == bytes);
      CHECK(error.free() > 0);
      CHECK(error.free() < bytes);
      const std::string text = error.what();
      const std::string wanted =
          fmt::format("memory: allocation on cpu: needs {} ({} bytes), {} free, ",
                      human_bytes(bytes), bytes, human_bytes(error.free()));
      CHECK(text.substr(0, wanted.size()) == wanted);
      CHECK(
          text.ends_with("held by living tensors; try fewer rows, members or seeds, --dtype f32, "
                         "or a machine with more memory"));
    }
    CHECK(refused);
  }
  CHECK(memory_stats(kCpu).in_use == before.in_use);
  CHECK(memory_stats(kCpu).system_allocations == before.system_allocations);
  CHECK(memory_stats(kCpu).cached == 0);  // what waited was given back before giving up
  CHECK_NOTHROW(Storage(kCpu, 1000));     // and the pool still serves
}

TEST_CASE("a plan can be refused before anything is allocated") {
  CHECK_NOTHROW(require_memory(kCpu, 1, "Gram matrix"));
  { const Storage waits(kCpu, 8 * kMiB); }
  REQUIRE(memory_stats(kCpu).cached >= 8 * kMiB);
  try {
    require_memory(kCpu, std::size_t{1} << 50, "Gram matrix [n, n]");
    FAIL("a PiB was granted");
  } catch (const OutOfMemory& error) {
    CHECK(std::string(error.what())
              .starts_with(
                  "memory: Gram matrix [n, n] on cpu: needs 1.0 PiB (1125899906842624 bytes), "));
    CHECK(error.needed() == std::size_t{1} << 50);
  }
  CHECK(memory_stats(kCpu).cached == 0);
}

TEST_CASE("a plan for a GPU leaves what CUDA takes itself") {
  if (no_gpu()) return;
  const Device gpu = Device::cuda();
  trim_memory(gpu);
  const std::size_t free = describe(gpu).free_bytes;
  CHECK(available_memory(gpu) <= free - 512 * kMiB);
  CHECK_NOTHROW(require_memory(gpu, free - 768 * kMiB, "plan"));
  CHECK_THROWS_AS(require_memory(gpu, free - 256 * kMiB, "plan"), OutOfMemory);
  CHECK_THROWS_AS(require_memory(gpu, ~std::size_t{0}, "plan"), OutOfMemory);
}

TEST_CASE("threads allocate, share and free at the same time") {
  const std::size_t before = in_use();
  const Storage shared(kCpu, 64);
  std::atomic<int> overlaps{0};
  const auto work = [&](unsigned char me) {
    std::vector<std::pair<Storage, std::size_t>> living;
    for (unsigned i = 0; i < 3000; ++i) {
      const std::size_t bytes = 64 + (i * 7919u + me * 104729u) % 7 * 300;
      Storage fresh(kCpu, bytes);
      std::memset(fresh.data(), me, bytes);
      living.emplace_back(std::move(fresh), bytes);
      const Storage copy = shared;
      if (living.size() < 8) continue;
      const auto& [oldest, size] = living.front();
      const auto* data = static_cast<const unsigned char*>(oldest.data());
      if (!std::all_of(data, data + size, [me](unsigned char c) { return c == me; })) ++overlaps;
      living.erase(living.begin());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned char me = 1; me <= 6; ++me) threads.emplace_back(work, me);
  for (std::thread& thread : threads) thread.join();
  CHECK(overlaps == 0);  // no block was ever in two hands
  CHECK(shared.unique());
  CHECK(in_use() == before + 64);
}

TEST_CASE("a GPU's blocks are aligned, pooled and refused like the CPU's") {
  if (no_gpu()) return;
  const Device gpu = Device::cuda();
  void* first = Storage(gpu, 123456).data();
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 256 == 0);
  const auto warm = memory_stats(gpu).system_allocations;
  CHECK(Storage(gpu, 123456).data() == first);
  CHECK(memory_stats(gpu).system_allocations == warm);
  trim_memory(gpu);
  CHECK(memory_stats(gpu).cached == 0);
  try {
    const Storage storage(gpu, std::size_t{1} << 46);
    FAIL("64 TiB were granted");
  } catch (const OutOfMemory& error) {
    CHECK(error.needed() == std::size_t{1} << 46);
    CHECK(std::string(error.what()).ends_with("or --device cpu"));
  }
}

TEST_CASE("what a thread freed is there for others once it has ended") {
  constexpr std::size_t kOdd = 777'777;  // a size that no other test asks for
  std::thread([] { Storage(Device::cpu(), kOdd); }).join();
  const std::uint64_t before = memory_stats(Device::cpu()).system_allocations;
  const Storage again(Device::cpu(), kOdd);
  CHECK(memory_stats(Device::cpu()).system_allocations == before);
}
