// Training on a GPU: steps recorded once and replayed, with looks at the losses in between.
#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <string_view>
#include <thread>

#include "../../core/random.h"
#include "../../nn/safetensors.h"
#include "../../nn/train_step.h"
#include "../../nn/trainer.h"
#include "../bits.h"
#include "../difference.h"
#include "../gpu.h"
#include "../message_of.h"
#include "small_training.h"
#include "temporary.h"

using namespace small_training;

namespace {

constexpr std::int64_t kEpochs = 104;  // beyond the first look, and steps on their own behind it

struct Trained {
  Tensor weights, losses;
};

Trained trained(const char* spec, Device device, TrainOptions options, DType dtype = DType::f32) {
  const Data data = some_data(20);
  Net net(spec, 2, {.members = 2, .dtype = dtype, .device = device});
  options.epochs = kEpochs;
  const auto there = [&](const Tensor& t) { return t.to(dtype).to(device); };
  const TrainReport report = train(net, there(data.x), there(data.y), options);
  CHECK(report.interrupted == (options.stop != nullptr));
  return {net.flat().to(Device::cpu()), report.losses};
}

// In two kernels a step, where that applies, and op by op; whole batches, and a rest of two rows.
template <class F>
void for_each_training(F f) {
  for (const char* spec : {"dense(17) layernorm relu dense(1)", "dense(9) layernorm gelu dense(1)",
                           "batchnorm dense(9) batchnorm gelu dense(1)",
                           "dense(9) residual(layernorm relu dense(9)) dense(1)"})
    for (const std::int64_t batch : {0, 6}) {
      CAPTURE(spec);
      CAPTURE(batch);
      f(spec, TrainOptions{.batch = batch, .optimiser = AdamOptions{.lr = 0.003}});
    }
}

}  // namespace

TEST_CASE("train: a GPU goes the CPU's way, and twice the same to the bit") {
  if (!test::gpu_here("train: a GPU goes the CPU's way")) return;
  for_each_training([](const char* spec, const TrainOptions& options) {
    const Trained cpu = trained(spec, Device::cpu(), options);
    const Trained once = trained(spec, Device::cuda(), options);
    const Trained twice = trained(spec, Device::cuda(), options);
    // A bias ahead of a batchnorm changes nothing, and of its derivative, which is rounding alone,
    // Adam makes steps like any other.
    const bool mixes = std::string_view(spec).find("batchnorm") != std::string_view::npos;
    CHECK(test::largest_difference(once.losses, cpu.losses) < (mixes ? 1e-3 : 1e-4));
    if (!mixes) CHECK(test::largest_difference(once.weights, cpu.weights) < 1e-3);
    CHECK(same_bits(once.weights, twice.weights));
    CHECK(same_bits(once.losses, twice.losses));
  });
}

TEST_CASE("train: recorded steps, many at once or one by one, are the steps, to the bit") {
  if (!test::gpu_here("train: recorded steps, many at once or one by one")) return;
  for_each_training([](const char* spec, const TrainOptions& options) {
    const Data data = some_data(20);
    Net net(spec, 2, {.members = 2, .device = Device::cuda()});
    const Tensor losses = Tensor::zeros({kEpochs, 2}, DType::f64, Device::cuda());
    TrainStep step(net, data.x.to(Device::cuda()), data.y.to(Device::cuda()),
                   {.batch = options.batch, .optimiser = options.optimiser}, losses);
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      step.start_epoch(epoch);
      for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
    }
    const Trained recorded = trained(spec, Device::cuda(), options);
    CHECK(same_bits(recorded.weights, net.flat().to(Device::cpu())));
    for (std::int64_t e = 0; e < kEpochs; ++e)
      for (std::int64_t s = 0; s < 2; ++s)
        CHECK(recorded.losses[s].to_vector<double>()[static_cast<std::size_t>(e)] ==
              losses[e].to_vector<double>()[static_cast<std::size_t>(s)]);
  });
}

TEST_CASE("train: of many steps an epoch ten are recorded at once, the others by themselves") {
  if (!test::gpu_here("train: of many steps an epoch ten are recorded at once")) return;
  const Data data = some_data(47);
  const Tensor x = data.x.to(Device::cuda()), y = data.y.to(Device::cuda());
  constexpr std::int64_t kFew = 3;
  for (const char* spec : {"dense(17) layernorm relu dense(1)", "dense(9) gelu dense(1)"}) {
    CAPTURE(spec);
    Net one_by_one(spec, 2, {.members = 2, .device = Device::cuda()});
    Net recorded(spec, 2, {.members = 2, .device = Device::cuda()});
    const Tensor losses = Tensor::zeros({kFew, 2}, DType::f64, Device::cuda());
    TrainStep step(one_by_one, x, y, {.batch = 2, .optimiser = AdamOptions{}}, losses);
    CHECK(step.steps_per_epoch() == 24);  // twice ten, three, and one of a single row
    for (std::int64_t epoch = 0; epoch < kFew; ++epoch) {
      step.start_epoch(epoch);
      for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
    }
    train(recorded, x, y, {.epochs = kFew, .batch = 2});
    CHECK(same_bits(recorded.flat(), one_by_one.flat()));
  }
}

TEST_CASE("train: in float64 a GPU goes the CPU's way, too") {
  if (!test::gpu_here("train: in float64 a GPU goes the CPU's way")) return;
  const TrainOptions options{.batch = 6, .optimiser = AdamOptions{.lr = 0.003}};
  const Trained cpu = trained(kSmallSpec, Device::cpu(), options, DType::f64);
  const Trained gpu = trained(kSmallSpec, Device::cuda(), options, DType::f64);
  CHECK(test::largest_difference(gpu.losses, cpu.losses) < 1e-10);
  CHECK(test::largest_difference(gpu.weights, cpu.weights) < 1e-9);
}

TEST_CASE("train: a GPU's steps and what is done between them do not disturb each other") {
  if (!test::gpu_here("train: a GPU's steps and what is done between them")) return;
  for_each_training([](const char* spec, TrainOptions options) {
    const Trained alone = trained(spec, Device::cuda(), options);
    int looks = 0;
    std::vector<Tensor> kept;  // of every size that a step may have used, full of other numbers
    options.progress = [&](const Progress&) {
      ++looks;
      for (std::int64_t n = 1; n < 3000; n = n * 9 / 8 + 1)
        kept.push_back(Tensor::full({n}, 1e30, DType::f32, Device::cuda()));
    };
    const Trained watched = trained(spec, Device::cuda(), options);
    CHECK(looks > 0);
    CHECK(same_bits(alone.weights, watched.weights));
    for (const Tensor& tensor : kept)
      CHECK(tensor.to_vector<float>() == std::vector<float>(tensor.elements(), 1e30f));
  });
}

TEST_CASE("train: stopped on a GPU and resumed, the end is the same to the bit") {
  if (!test::gpu_here("train: stopped on a GPU and resumed")) return;
  for_each_training([](const char* spec, TrainOptions options) {
    const Trained unbroken = trained(spec, Device::cuda(), options);
    const Temporary file("gpu.checkpoint");
    options.checkpoint = file.path();
    TrainOptions stopped = options;
    std::atomic<bool> stop{false};
    stopped.stop = &stop;
    stopped.progress = [&](const Progress&) { stop = true; };
    trained(spec, Device::cuda(), stopped);
    options.resume = true;
    const Trained resumed = trained(spec, Device::cuda(), options);
    CHECK(same_bits(resumed.weights, unbroken.weights));
    CHECK(same_bits(resumed.losses, unbroken.losses));
  });
}

TEST_CASE("train: stopped on a GPU in the middle of an epoch, it has not begun it") {
  if (!test::gpu_here("train: stopped on a GPU in the middle of an epoch")) return;
  const Temporary file("gpu_middle.checkpoint");
  constexpr std::int64_t kRows = 20000;  // an epoch of batches of one: half a second and more
  const Tensor x = normal({kRows, 2}, {1, 0}).to(Device::cuda());
  const Tensor y = normal({kRows, 1}, {1, 1}).to(Device::cuda());
  std::atomic<bool> stop{false};
  Net net("dense(5) layernorm relu dense(1)", 2, {.members = 2, .device = Device::cuda()});
  const Tensor before = net.flat().clone();
  const std::jthread wish([&] {  // joins, whatever train() throws
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  const TrainReport report =
      train(net, x, y, {.epochs = 1, .batch = 1, .stop = &stop, .checkpoint = file.path()});
  CHECK(report.interrupted);
  CHECK(report.epochs_done == std::vector<std::int64_t>{0, 0});
  CHECK(same_bits(net.flat(), before));
  CHECK(read_safetensors(file.path()).find("losses")->shape() == Shape{2, 0});
}

TEST_CASE("train: a GPU's loss that is not finite stops with member, seed and epoch") {
  if (!test::gpu_here("train: a GPU's loss that is not finite")) return;
  const Data data = some_data(20);
  std::vector<float> y = data.y.to_vector<float>();
  y[3] = std::numeric_limits<float>::infinity();
  Net net(kSmallSpec, 2, {.seeds = {7, 8}, .device = Device::cuda()});
  const std::string message = message_of([&] {
    train(net, data.x.to(Device::cuda()), Tensor::from(y, {20, 1}, Device::cuda()), {.epochs = 5});
  });
  CAPTURE(message);
  CHECK(message.starts_with("train: "));
  CHECK(message.find("seed 7") != std::string::npos);
}
