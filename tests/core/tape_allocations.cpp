// A tape that is cleared and reused asks for no memory: neither operator new nor the pool's system.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/adam.h"
#include "../../kernels/arithmetic.h"
#include "../../kernels/dense.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/mse.h"

// Every form, so that each new meets its own delete under the address sanitizer too.
static std::atomic<long> news{0};

static void* counted(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
  ++news;
  return std::aligned_alloc(align, (bytes + align) / align * align);
}
static void* wanted(void* place) { return place ? place : throw std::bad_alloc(); }
using Align = std::align_val_t;
using Quiet = const std::nothrow_t&;

void* operator new(std::size_t n) { return wanted(counted(n)); }
void* operator new[](std::size_t n) { return wanted(counted(n)); }
void* operator new(std::size_t n, Align a) { return wanted(counted(n, std::size_t(a))); }
void* operator new[](std::size_t n, Align a) { return wanted(counted(n, std::size_t(a))); }
void* operator new(std::size_t n, Quiet) noexcept { return counted(n); }
void* operator new[](std::size_t n, Quiet) noexcept { return counted(n); }
void* operator new(std::size_t n, Align a, Quiet) noexcept { return counted(n, std::size_t(a)); }
void* operator new[](std::size_t n, Align a, Quiet) noexcept { return counted(n, std::size_t(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, Align) noexcept { std::free(p); }
void operator delete[](void* p, Align) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, Align) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, Align) noexcept { std::free(p); }
void operator delete(void* p, Quiet) noexcept { std::free(p); }
void operator delete[](void* p, Quiet) noexcept { std::free(p); }
void operator delete(void* p, Align, Quiet) noexcept { std::free(p); }
void operator delete[](void* p, Align, Quiet) noexcept { std::free(p); }

using namespace keel;

TEST_CASE("the counter of this test counts") {
  const long before = news;
  delete new std::atomic<int>(1);
  std::vector<int>(1000).swap(*std::make_unique<std::vector<int>>());
  CHECK(news >= before + 3);
}

namespace {

// dense(128) layernorm relu dense(1), its parameters and their derivatives slices of flat tensors.
struct Net {
  Net(std::int64_t members, std::int64_t inputs) {
    constexpr std::int64_t h = 128;
    std::vector<Shape> shapes = {{h, inputs}, {h}, {h}, {h}, {1, h}, {1}};
    if (members > 0)
      shapes = {{members, h, inputs}, {members, h},    {members, h},
                {members, h},         {members, 1, h}, {members, 1}};
    std::int64_t total = 0;
    for (const Shape& shape : shapes) total += shape.elements();
    flat = normal({total}, {1, 2}, 0.1);
    d_flat = Tensor::zeros({total});
    std::int64_t begin = 0;
    for (const Shape& shape : shapes) {
      const std::int64_t end = begin + shape.elements();
      parameters.push_back(flat.slice(begin, end).reshape(shape));
      derivatives.push_back(d_flat.slice(begin, end).reshape(shape));
      begin = end;
    }
  }

  Tensor flat, d_flat;
  std::vector<Tensor> parameters, derivatives;
};

double train(Net& net, const Tensor& x, const Tensor& y, int epochs) {
  Tape tape;
  GradientSink gradients;
  AdamState adam_state(net.flat);
  double loss_value = 0;
  long first_news = 0;
  std::uint64_t first_system = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (epoch == 1) {
      first_news = news;
      first_system = memory_stats(Device::cpu()).system_allocations;
    }
    tape.clear();
    const auto leaf = [&](std::size_t i) {
      Var v = tape.leaf(net.parameters[i]);
      if (epoch == 0) gradients.bind(v, net.derivatives[i]);
      return v;
    };
    const Var w0 = leaf(0), b0 = leaf(1), gain = leaf(2), bias = leaf(3), w1 = leaf(4),
              b1 = leaf(5);
    const Var hidden = layer_norm_relu(dense(x, w0, b0), gain, bias);
    const Var loss = mse(dense(hidden, w1, b1, {.weight = 0.1, .bias = 0.1}), y);
    tape.backward(loss, gradients);
    adam(net.flat, net.d_flat, adam_state, {.lr = 0.01});
    loss_value = loss.value().data<float>()[0];
  }
  const long last_news = news;
  if (epochs > 1) {
    CHECK(last_news == first_news);
    CHECK(memory_stats(Device::cpu()).system_allocations == first_system);
  }
  return loss_value;
}

}  // namespace

TEST_CASE("from its second epoch on, training allocates nothing") {
  const Tensor x = normal({100, 5}, {3, 0}), y = normal({100, 1}, {3, 1});
  Net one(0, 5), again(0, 5);
  const double first = train(one, x, y, 1), last = train(again, x, y, 50);
  CHECK(last < 0.9 * first);  // and it did train
}

TEST_CASE("from its second epoch on, training an ensemble allocates nothing") {
  const Tensor x = normal({100, 5}, {3, 0}), y = normal({100, 1}, {3, 1});
  Net one(3, 5), again(3, 5);
  const double first = train(one, x, y, 1), last = train(again, x, y, 50);
  CHECK(last < 0.9 * first);
}

TEST_CASE("a cleared tape records again where it recorded before") {
  Tape tape;
  const Tensor x = Tensor::full({1}, 1);
  long first = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 1) first = news;
    tape.clear();
    Var y = tape.leaf(x);
    for (int i = 0; i < 5000; ++i) y = scale(y, 1);
  }
  const long last = news;
  CHECK(last == first);
}

TEST_CASE("a check that holds, a shape and a shared tensor allocate nothing") {
  const Tensor x = Tensor::zeros({4, 3});
  const long before = news;
  const Tensor row = x[1].reshape({3, 1});
  check(row.shape() == Shape{3, 1}, "test", "got {}", row.shape());
  const Tensor other = Tensor::zeros({4, 3});  // a first block of this size may be new
  const long after_one = news;
  for (int i = 0; i < 10; ++i) fill(Tensor::zeros({4, 3}), 1);
  CHECK(after_one - before <= 1);
  CHECK(news - after_one <= 1);
}
