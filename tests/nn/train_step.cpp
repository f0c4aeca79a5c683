// An epoch of steps: the order of its rows, and where its loss goes.
#include "../../nn/train_step.h"

#include <doctest/doctest.h>

#include "../bits.h"
#include "small_training.h"

using namespace small_training;

TEST_CASE("train: each epoch has an order of its rows, the same each time") {
  const Data data = some_data();
  const auto after = [&](std::int64_t epoch) {
    Net net(kSmallSpec, 2);
    TrainStep step(net, data.x, data.y, {.batch = 16, .optimiser = SgdOptions{.lr = 0.01}},
                   Tensor::zeros({2, 1}, DType::f64));
    step.start_epoch(epoch);
    for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
    return net.flat();
  };
  CHECK(same_bits(after(1), after(1)));
  CHECK(!same_bits(after(0), after(1)));
}

TEST_CASE("train: an epoch's loss goes to its place, whichever epoch was the last") {
  const Data data = some_data();
  Net net(kSmallSpec, 2);
  const Tensor losses = Tensor::zeros({3, 1}, DType::f64);
  TrainStep step(net, data.x, data.y, {.optimiser = AdamOptions{}}, losses);
  for (const std::int64_t epoch : {0, 2}) {
    step.start_epoch(epoch);
    step.run(50);
  }
  const auto got = losses.to_vector<double>();
  CHECK(got[0] > 0);
  CHECK(got[1] == 0);
  CHECK(got[2] > 0);
}
