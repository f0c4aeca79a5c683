// What only two GPUs can get wrong: which of them is the current one.
#include <doctest/doctest.h>

#include <future>
#include <thread>
#include <vector>

#include "../../core/device.h"
#include "../../core/memory.h"
#include "../../core/random.h"
#include "../../core/tensor.h"
#include "../../kernels/cholesky.h"
#include "../../kernels/gemm.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/solve_lower.h"
#include "../gpu.h"

using namespace keel;

namespace {

bool two_gpus(const char* test) {
  if (cuda_device_count() > 1) return true;
  fmt::print("SKIPPED {}: wants two GPUs\n", test);
  return false;
}

Tensor normalised(const Tensor& x) {
  const Tensor product = Tensor::empty({5, 5}, DType::f32, x.device());
  gemm(Transpose::no, Transpose::yes, 1, x, x, 0, product);
  return layer_norm(product, 1e-5).value();
}

Tensor inputs(Device device) { return normal({5, 12}, {1, 1}).to(device); }

std::vector<float> normalised_on(Device device) {
  return normalised(inputs(device)).to_vector<float>();
}

}  // namespace

TEST_CASE("two GPUs: each works on its own tensors, whichever was used last") {
  if (!two_gpus("each works on its own tensors")) return;
  const std::vector<float> wanted = normalised_on(Device::cpu());
  const Tensor x = inputs(Device::cuda(0)), y = inputs(Device::cuda(1));
  for (int i = 0; i < 2; ++i) {  // the last call was for the other one, and nothing tells but x
    const Tensor of_x = layer_norm(x, 1e-5).value(), of_y = layer_norm(y, 1e-5).value();
    CHECK(of_x.to_vector<float>() == of_y.to_vector<float>());
  }
  const std::vector<float> first = normalised(x).to_vector<float>();
  CHECK(normalised(y).to_vector<float>() == first);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(first[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  for (int i = 0; i < 2; ++i) {
    const StreamScope own_stream(Device::cuda(i));
    CHECK(normalised_on(Device::cuda(1)) == first);
    CHECK(normalised_on(Device::cuda(0)) == first);
  }
}

TEST_CASE("a GPU's stream of its own finds what the one before had still to write") {
  if (!test::gpu_here("a GPU's stream of its own")) return;
  const Tensor x = Tensor::full({100}, 3, DType::f64, Device::cuda());
  accumulate(x, x);
  {
    const StreamScope own_stream(Device::cuda());
    accumulate(x, x);
    CHECK(x.to_vector<double>() == std::vector<double>(100, 12));
    accumulate(x, x);
  }
  CHECK(x.to_vector<double>() == std::vector<double>(100, 24));
}

TEST_CASE("a GPU's freed memory is not another stream's while it may still be written to") {
  if (!test::gpu_here("a GPU's freed memory")) return;
  const Tensor ones = Tensor::full({12345}, 1, DType::f32, Device::cuda());
  std::promise<void> ready, freed;
  Tensor kept;
  std::thread other([&] {
    const StreamScope own_stream(Device::cuda());  // waits for what came before, not for the rest
    ready.set_value();
    freed.get_future().wait();
    kept = ones.clone();
    synchronize(Device::cuda());
  });
  ready.get_future().wait();
  Tensor::full({12345}, 5, DType::f32, Device::cuda());  // freed, and perhaps still to be filled
  freed.set_value();
  other.join();
  synchronize(Device::cuda());
  CHECK(kept.to_vector<float>() == std::vector<float>(12345, 1));
}

TEST_CASE("a GPU's stream of its own has the memory that was freed before, whole and in parts") {
  if (!test::gpu_here("a GPU's stream of its own has the memory")) return;
  const Device gpu = Device::cuda();
  trim_memory(gpu);
  const std::size_t available = available_memory(gpu), most = available / 4 * 3;
  { const Storage freed(gpu, most); }
  const StreamScope own_stream(gpu);
  const auto asked = [&] { return memory_stats(gpu).system_allocations; };
  const std::uint64_t before = asked();
  { const Storage again(gpu, most); }
  CHECK(asked() == before);
  CHECK(memory_stats(gpu).cached >= most);
  { const Storage other(gpu, available / 8 * 7); }  // beside the waiting block there is no room
  CHECK(asked() > before);
  CHECK(memory_stats(gpu).cached < available);
  trim_memory(gpu);
}

TEST_CASE("two GPUs: a copy finds what the other has still to write") {
  if (!two_gpus("a copy finds what the other has still to write")) return;
  const Tensor x = Tensor::full({100}, 3, DType::f64, Device::cuda(1));
  accumulate(x, x);
  const Tensor there = x.to(Device::cuda(0));
  accumulate(there, there);
  CHECK(there.to(Device::cuda(1)).to_vector<double>() == std::vector<double>(100, 12));
  CHECK(x.to_vector<double>() == std::vector<double>(100, 6));
}

TEST_CASE("two GPUs: solvers and memory are those of the tensor's GPU") {
  if (!two_gpus("solvers and memory are those of the tensor's GPU")) return;
  const std::size_t before = memory_stats(Device::cuda(0)).in_use;
  const Tensor a = Tensor::from(std::vector<double>{4, 2, 2, 5}, {2, 2}, Device::cuda(1));
  CHECK(!cholesky(a));
  const Tensor b = Tensor::from(std::vector<double>{2, 5}, {2, 1}, Device::cuda(1));
  solve_lower(a, b);
  CHECK(b.to_vector<double>() == std::vector<double>{1, 2});
  CHECK(memory_stats(Device::cuda(0)).in_use == before);
}
