// One epoch (forward, MSE, backward, Adam) of dense(128) layernorm relu dense(128) relu dense(1) on
// 100 points, as bench/peers/train_step.py does it in PyTorch. Where that script's environment has
// been made (bench/peers/setup.sh), it runs here too and the ratio is printed.
#include <cmath>
#include <optional>

#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

struct PlainStep {
  explicit PlainStep(Device device) : device(device) {
    for (const Shape& shape : shapes) count += shape.elements();
    parameters = Tensor::empty({count}, DType::f32, device);
    gradients = Tensor::empty({count}, DType::f32, device);
    std::int64_t at = 0;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const std::int64_t n = shapes[k].elements();
      parameter.push_back(parameters.slice(at, at + n).reshape(shapes[k]));
      gradient.push_back(gradients.slice(at, at + n).reshape(shapes[k]));
      const double fan_in = static_cast<double>(shapes[k].cols());
      copy(parameter[k], shapes[k].rank() == 2 ? normal(shapes[k], {1, k}, std::sqrt(2 / fan_in))
                                               : Tensor::full(shapes[k], k == 2 ? 1 : 0));
      at += n;
    }
    state.emplace(parameters);
    std::vector<float> grid(kPoints), sine(kPoints);
    for (std::int64_t i = 0; i < kPoints; ++i) {
      grid[i] = -5 + 10 * static_cast<float>(i) / (kPoints - 1);
      sine[i] = std::sin(grid[i]);
    }
    x = Tensor::from(grid, {kPoints, 1}, device);
    y = Tensor::from(sine, {kPoints, 1}, device);
  }

  Tensor epoch() {
    tape.clear();
    leaves.clear();
    for (std::size_t k = 0; k < parameter.size(); ++k) {
      leaves.push_back(tape.leaf(parameter[k]));
      sink.bind(leaves[k], gradient[k]);
    }
    const Var first = layer_norm_relu(dense(x, leaves[0], leaves[1]), leaves[2], leaves[3]);
    const Var second = relu(dense(first, leaves[4], leaves[5]));
    const Var loss = mse(dense(second, leaves[6], leaves[7]), y);
    tape.backward(loss, sink);
    adam(parameters, gradients, *state);
    return loss.value();
  }

  const std::vector<Shape> shapes = {{kWidth, 1},      {kWidth}, {kWidth},    {kWidth},
                                     {kWidth, kWidth}, {kWidth}, {1, kWidth}, {1}};
  Device device;
  std::int64_t count = 0;
  Tensor parameters, gradients, x, y;
  std::vector<Tensor> parameter, gradient;
  std::vector<Var> leaves;
  std::optional<AdamState> state;
  Tape tape;
  GradientSink sink;
};

}  // namespace

void bench_training_step(Report& report, Device device, const Options& options) {
  // The net trains: the loss of a sine falls below 1/100 of its start.
  PlainStep trial(device);
  const double start = trial.epoch().item();
  for (std::int64_t epoch = options.size(1500, 3); epoch > 0; --epoch) trial.epoch();
  const double end = trial.epoch().item();
  const double wanted = options.rehearse ? start : start / 100;
  check(end < wanted, "bench", "loss went from {} to {}, wanted less than {}", start, end, wanted);

  const double weights = kWidth + kWidth * kWidth + kWidth;
  const double flop = 2.0 * kPoints * (3 * weights - kWidth);  // no d_x of the first layer
  for (const int threads : thread_choices(device)) {
    const ThreadLimit limit(threads);
    PlainStep step(device);
    step.epoch();
    const std::uint64_t before = memory_stats(device).system_allocations;
    const Timing time = measure(device, [&] { step.epoch(); });
    const std::uint64_t allocations = memory_stats(device).system_allocations - before;
    // torch.optim.Adam's fastest form, and as it comes.
    const std::string row = "training epoch, 100 points, 2 x 128" + on_threads(device);
    report.add(
        {row, time, 0, flop, fmt::format("{} allocations after the first epoch", allocations)});
    report.later([&report, device, row] {
      report.add_peers(
          row, {peer_time("PyTorch, fused Adam", device, "train_step.py", "--adam fused"),
                peer_time("PyTorch, default Adam", device, "train_step.py", "--adam default")});
    });
  }
}

}  // namespace keel::bench
