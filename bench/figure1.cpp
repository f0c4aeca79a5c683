// The training behind Figure 1: 60 nets (3 data sets x 4 architectures x 5 seeds), full-batch Adam
// on 100 points, beside PyTorch eager and the strongest peers; and where an epoch's time goes.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "../core/each_in_parallel.h"
#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "epochs.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

constexpr std::int64_t kEpochs = 3000;
const char* const kSpecs[] = {
    "dense(128) relu dense(128) relu dense(1)",
    "dense(128) layernorm relu dense(128) relu dense(1)",
    "dense(128) relu dense(128) layernorm relu dense(1)",
    "dense(128) layernorm relu dense(128) layernorm relu dense(1)",
};
// Of Figure 5: on a GPU another kernel than relu's.
const char* const kCurved = "dense(128) layernorm gelu dense(128) layernorm gelu dense(1)";

// sin x, x / 2 and x^2 / 5 on [-5, 5], each for `seeds` members: x [100, 1], y [3 seeds, 100, 1].
std::pair<Tensor, Tensor> toy_data(Device device, std::int64_t seeds) {
  std::vector<float> x(kPoints), y;
  for (std::int64_t i = 0; i < kPoints; ++i) x[i] = -5 + 10 * static_cast<float>(i) / (kPoints - 1);
  for (int data = 0; data < 3; ++data)
    for (std::int64_t seed = 0; seed < seeds; ++seed)
      for (float v : x) y.push_back(data == 0 ? std::sin(v) : data == 1 ? v / 2 : v * v / 5);
  return {Tensor::from(x, {kPoints, 1}, device), Tensor::from(y, {3 * seeds, kPoints, 1}, device)};
}

// Makes all nets and trains them; seconds of both, and the largest loss of any member, as the
// median of its last 200 epochs: single epochs of full-batch Adam jump.
std::pair<double, double> train_all(Device device, std::int64_t seeds, std::int64_t epochs) {
  const std::pair<Tensor, Tensor> data = toy_data(device, seeds);
  const std::int64_t tail = std::min<std::int64_t>(epochs, 200);
  std::vector<std::uint64_t> drawn;
  for (std::int64_t member = 0; member < 3 * seeds; ++member)
    drawn.push_back(static_cast<std::uint64_t>(member % seeds));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Net> nets;
  for (const char* spec : kSpecs)
    nets.emplace_back(spec, 1, NetOptions{.seeds = drawn, .device = device});
  std::vector<TrainReport> reports(nets.size());
  each_on(device, nets.size(), [&](std::size_t i) {  // as the figure does
    reports[i] = train(nets[i], data.first, data.second,
                       {.epochs = epochs, .sharers = static_cast<int>(nets.size())});
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double worst = 0;
  for (const TrainReport& report : reports)
    for (std::int64_t s = 0; s < 3 * seeds; ++s) {
      std::vector<double> last = report.losses[s].slice(epochs - tail, epochs).to_vector<double>();
      const auto middle = last.begin() + tail / 2;
      std::nth_element(last.begin(), middle, last.end());
      worst = std::max(worst, *middle);
    }
  return {seconds, worst};
}

// What one epoch of one LN-every net spends on each kind of work, timed apart on the same shapes. A
// GPU has no such parts: one kernel makes the gradient.
void bench_breakdown(Report& report, Device device, const Options& options) {
  const auto data = toy_data(device, 1);
  const Tensor x = data.first, y = data.second[0];
  const Timing epoch =
      measure_epochs(kSpecs[3], x, y, options.size(kEpochs, 3), options.size(5, 1));
  report.add({"one epoch, LN every, 1 net", epoch});
  report.add({"one epoch, LN every with gelu, 1 net",
              measure_epochs(kCurved, x, y, options.size(kEpochs, 3), options.size(5, 1))});
  if (device.is_cuda()) return;

  const auto made = [&](std::int64_t rows, std::int64_t cols) {
    return normal({rows, cols}, {1, 1}).to(device);
  };
  const Tensor h = made(kPoints, kWidth), d = made(kPoints, kWidth), w = made(kWidth, kWidth);
  const Tensor w1 = made(kWidth, 1), w3 = made(1, kWidth), out = made(kPoints, 1);
  const auto no = Transpose::no, yes = Transpose::yes;
  const Timing products = measure(device, [&] {
    gemm(no, yes, 1, x, w1, 1, h);  // forward: three layers
    gemm(no, yes, 1, h, w, 1, d);
    gemm(no, yes, 1, d, w3, 1, out);
    gemm(yes, no, 1, out, h, 0, w3);  // derivatives of the weights, and of all inputs but x
    gemm(no, no, 1, out, w3, 0, d);
    gemm(yes, no, 1, d, h, 0, w);
    gemm(no, no, 1, d, w, 0, h);
    gemm(yes, no, 1, d, x, 0, w1);
  });
  Tape tape;
  GradientSink gradients;
  const Tensor gain = Tensor::full({kWidth}, 1, DType::f32, device);
  const Tensor prediction = made(kPoints, 1), inner = made(kPoints, kWidth);
  const Timing rows = measure(device, [&] {
    tape.clear();
    const Var leaf = tape.leaf(inner), vg = tape.leaf(gain), vb = tape.leaf(gain);
    const Var twice = layer_norm_relu(layer_norm_relu(leaf, vg, vb), vg, vb);
    tape.backward(twice, d, gradients);
    tape.backward(mse(tape.leaf(prediction), y), gradients);
    sum_rows(d, 1, false, gain);  // derivatives of the biases
    sum_rows(d, 1, false, gain);
  });
  const Net net(kSpecs[3], 1, {.device = device});
  AdamState state(net.flat());
  const Tensor zero = Tensor::zeros(net.flat().shape(), DType::f32, device);
  const Timing update = measure(device, [&] { adam(net.flat(), zero, state); });
  const auto share = [&](double seconds) {
    return fmt::format("{:.0f}% of the epoch", 100 * seconds / epoch.median);
  };
  const double flop = 2.0 * kPoints * (3 * (kWidth * kWidth + kWidth) + 2 * kWidth);
  // Two layers of LN: forward reads and writes, backward reads twice and writes; two sums of rows.
  const double moved = sizeof(float) * 12.0 * kPoints * kWidth;
  const double adam_moved = sizeof(float) * 7.0 * static_cast<double>(net.flat().elements());
  report.add({"  its matrix products", products, 0, flop, share(products.median)});
  report.add({"  its row programs", rows, moved, 0, share(rows.median)});
  report.add({"  its Adam update", update, adam_moved, 0, share(update.median)});
  const double rest = epoch.median - products.median - rows.median - update.median;
  const char* what_is_left = "  everything else (tape, launches, biases)";
  if (rest > 0)
    report.add({what_is_left, {rest, rest, rest}, 0, 0, share(rest)});
  else
    report.leave_out(what_is_left, "its parts, timed apart, took longer than the epoch");
}

}  // namespace

void bench_figure1(Report& report, Device device, const Options& options) {
  // With --quick too short to be judged by its loss, and scaled for nobody.
  const std::int64_t epochs = options.size(kEpochs, kEpochs / 10, 3), seeds = options.size(5, 1);
  // A GPU loads its kernels at first use, and is done in so short a time that once says little.
  const bool often = device.is_cuda() && !options.rehearse;
  if (often) train_all(device, seeds, 200);
  double worst = 0;
  std::vector<double> times;
  while (times.size() < (often ? 5 : 1)) {
    const auto [seconds, loss] = train_all(device, seeds, epochs);
    times.push_back(seconds);
    worst = std::max(worst, loss);
  }
  // Forward and backward: three products a layer, but no d_x of the first.
  const std::int64_t nets = static_cast<std::int64_t>(std::size(kSpecs)) * 3 * seeds;
  const double flop = 2.0 * kPoints * (3 * (kWidth * kWidth + kWidth) + 2 * kWidth) *
                      static_cast<double>(epochs * nets);
  const std::string row =
      fmt::format("Figure 1: {} nets x {} epochs{}", nets, epochs, on_threads(device));
  report.add({row, summary(times), 0, flop, fmt::format("worst loss {:.2g}", worst)});
  bench_breakdown(report, device, options);
  // Peers are timed on fewer epochs and scaled, as their JSON says.
  const double share = static_cast<double>(epochs) / kEpochs;
  const auto add = [&](const std::string& name, const std::string& arguments) {
    report.later([&report, device, row, share, name, arguments] {
      report.add_peers(row, {peer_time(name, device, "fig1.py", arguments, share)});
    });
  };
  add("PyTorch eager", "--peer torch-eager --nets 12 --epochs 100");
  add("PyTorch eager, fused Adam", "--peer torch-eager-fused --nets 12 --epochs 100");
  // A GPU is done with all epochs in seconds, but one net after another.
  for (const std::string peer : {"jax-vmap", "torch-compile", "jax-map"})
    add(peer, fmt::format("--peer {} --epochs {}", peer,
                          device.is_cuda() && peer != "jax-map" ? 3000 : 300));
  check(epochs < kEpochs || worst < 0.02, "bench",
        "a net ends at a loss of {}, wanted less than 0.02", worst);
}

}  // namespace keel::bench
