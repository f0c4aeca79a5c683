// Work that is done again: on the CPU a call, on a GPU a recorded graph.
#include "../../core/repeated_work.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "../../core/memory.h"
#include "../../core/tensor.h"
#include "../gpu.h"

using namespace keel;

namespace {

std::vector<double> eight(double value) { return std::vector<double>(8, value); }

}  // namespace

TEST_CASE("repeated work: on the CPU it is called each time, and what it throws comes through") {
  int calls = 0;
  RepeatedWork work(Device::cpu(), [&] {
    if (++calls == 3) fail("work", "got a third call");
  });
  work.run();
  work.run();
  CHECK(calls == 2);
  CHECK_THROWS_AS(work.run(), Error);
  CHECK_NOTHROW(work.run());
  CHECK(calls == 4);
}

TEST_CASE("repeated work: a GPU is told twice, and does it each time, in the caller's order") {
  if (!test::gpu_here("repeated work: a GPU is told twice")) return;
  const Device gpu = Device::cuda();
  const Tensor x = Tensor::full({8}, 1, DType::f64, gpu), sum = Tensor::zeros({8}, DType::f64, gpu);
  int calls = 0;
  {
    RepeatedWork work(gpu, [&] {
      ++calls;
      const Tensor twice = x.clone();  // memory of its own
      accumulate(twice, x);
      accumulate(sum, twice);
    });
    for (int i = 0; i < 5; ++i) {
      fill(x, i);
      work.run();
    }
    CHECK(calls == 2);
    CHECK(sum.to_vector<double>() == eight(20));
    const StreamScope elsewhere(gpu);
    fill(x, 100);
    work.run();
    CHECK(sum.to_vector<double>() == eight(220));
    fill(x, 1);
    work.run();
  }
  CHECK(calls == 2);
  CHECK(sum.to_vector<double>() == eight(222));
}

TEST_CASE("repeated work: a GPU's memory that it takes is nobody else's between its runs") {
  if (!test::gpu_here("repeated work: a GPU's memory")) return;
  const Device gpu = Device::cuda();
  const Tensor x = Tensor::full({12345}, 7, DType::f64, gpu);
  const Tensor result = Tensor::zeros({12345}, DType::f64, gpu);
  RepeatedWork work(gpu, [&] {
    const Tensor between = x.clone();
    copy(result, between);
  });
  for (int i = 0; i < 3; ++i) work.run();
  const Tensor mine = Tensor::full({12345}, 3, DType::f64, gpu);
  trim_memory(gpu);  // nor may it go back to the system
  work.run();
  CHECK(mine.to_vector<double>() == std::vector<double>(12345, 3));
  CHECK(result.to_vector<double>() == std::vector<double>(12345, 7));
}

TEST_CASE("repeated work: what cannot be recorded on a GPU is refused, and all goes on") {
  if (!test::gpu_here("repeated work: what cannot be recorded")) return;
  const Device gpu = Device::cuda();
  const Tensor x = Tensor::full({8}, 1, DType::f64, gpu);
  std::vector<Tensor> kept;
  trim_memory(gpu);  // no block of that size is left
  RepeatedWork grows(gpu, [&] { kept.push_back(Tensor::zeros({54321}, DType::f64, gpu)); });
  grows.run();
  CHECK_THROWS_WITH_AS(grows.run(), doctest::Contains("while a graph is recorded"), DeviceError);
  std::optional<RepeatedWork> throws;
  int calls = 0;
  throws.emplace(gpu, [&] {
    accumulate(x, x);
    if (++calls == 2) fail("work", "got a second call");
  });
  throws->run();
  CHECK_THROWS_WITH_AS(throws->run(), "work: got a second call", Error);
  CHECK(x.to_vector<double>() == eight(2));  // what was recorded was not done
  throws->run();
  throws->run();
  CHECK(calls == 3);
  throws.reset();
  CHECK(x.to_vector<double>() == eight(8));
  CHECK_NOTHROW(synchronize(gpu));
}
