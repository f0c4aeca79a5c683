#include "../../nn/blocked_gradient.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/threads.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/mse.h"
#include "../../nn/trainer.h"
#include "../bits.h"
#include "small_training.h"

using namespace small_training;

TEST_CASE("blocked gradient: in blocks is that of all rows at once, within rounding") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (std::int64_t n : {1, 511, 512, 513, 5003}) {
      const Data data = some_data(n);
      const Tensor x = data.x.to(dtype), y = data.y.to(dtype);
      const Net net(kSmallSpec, 2, {.dtype = dtype});
      Tape tape;
      GradientSink sink;
      const std::vector<Var> leaves = net.leaves(tape);
      const Tensor whole = Tensor::zeros(net.flat().shape(), dtype);
      for (std::size_t p = 0; p < leaves.size(); ++p)
        sink.bind(leaves[p], net.layout().view(whole, p));
      const Var loss = mse(net.forward(x, leaves), y);
      tape.backward(loss, sink);

      const Tensor blocks = Tensor::full(net.flat().shape(), 1e30, dtype);
      BlockedGradient gradient(net, blocks);
      const double precision = dtype == DType::f32 ? 2e-6 : 1e-14;
      CHECK(std::abs(gradient.run(x, y) / loss.value().item() - 1) < precision);
      const auto got = blocks.to_vector<double>(), wanted = whole.to_vector<double>();
      double largest = 0, apart = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        largest = std::max(largest, std::abs(wanted[i]));
        apart = max_or_nan(apart, std::abs(got[i] - wanted[i]));
      }
      CHECK(apart < precision * largest);
    }
  }
}

TEST_CASE(
    "blocked gradient: as many rows as a block holds take the path of one block, to the bit") {
  Net stepped(kSmallSpec, 2), by_hand = stepped.clone();
  const Tensor gradients = Tensor::zeros(by_hand.flat().shape());
  const std::int64_t n = BlockedGradient(by_hand, gradients).block_rows();
  const Data data = some_data(n);
  train(stepped, data.x, data.y, {.epochs = 3});
  AdamState state(by_hand.flat());
  for (int epoch = 0; epoch < 3; ++epoch) {
    Tape tape;
    GradientSink sink;
    const std::vector<Var> leaves = by_hand.leaves(tape);
    for (std::size_t p = 0; p < leaves.size(); ++p)
      sink.bind(leaves[p], by_hand.layout().view(gradients, p));
    tape.backward(mse(by_hand.forward(data.x, leaves), data.y), sink);
    adam(by_hand.flat(), gradients, state);
  }
  CHECK(same_bits(stepped.flat(), by_hand.flat()));
}

TEST_CASE("blocked gradient: pays where rows are many, and the net's gradients small beside them") {
  const auto pays = [](const char* spec, std::int64_t features, std::int64_t rows) {
    const Net net(spec, features);
    return BlockedGradient(net, Tensor::zeros(net.flat().shape())).pays(rows);
  };
  const char* small = "dense(128) relu dense(128) relu dense(1)";
  CHECK(!pays(small, 9, 1));
  CHECK(!pays(small, 9, 240));  // one block
  CHECK(pays(small, 9, 1000));
  CHECK(pays(small, 9, 40132));
  const char* wide = "dense(1024) relu dense(1024) relu dense(1)";
  CHECK(!pays(wide, 256, 4096));
  CHECK(!pays(wide, 256, 16000));
  CHECK(pays(wide, 256, 100000));
}

TEST_CASE("blocked gradient: blocks end the same for any thread count, whole and in mini-batches") {
  const Data data = some_data(5003);
  for (std::int64_t batch : {0, 1700}) {
    std::vector<Tensor> ends;
    for (int threads : {1, 2, 3, 8}) {
      const ThreadLimit limit(threads);
      Net net(kSmallSpec, 2);
      train(net, data.x, data.y, {.epochs = 2, .batch = batch});
      ends.push_back(net.flat());
    }
    for (const Tensor& end : ends) CHECK(same_bits(end, ends[0]));
  }
}
