// One step (forward, MSE, backward, Adam) of the transformer of Figure 7 on 32 sequences of 29
// values, as bench/peers/transformer_torch.py and transformer_jax.py do it.
#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "peer.h"

namespace keel::bench {
namespace {

/// To predict each value itself: as much work as the next one, and random ones can be learned.
struct TimedStep {
  TimedStep(Device device, std::int64_t sequences)
      : net({.device = device}),
        x(normal({sequences, net.options().length}, {1, 0}).to(device)),
        step(net, sequences) {}

  void run() { step.run(x, x); }
  double loss() const { return step.loss().item(); }

  Transformer net;
  Tensor x;
  TransformerStep step;
};

// Multiplications and additions of a step: all products three times but the first, which has no
// derivative of its input, and attention's as often, for the j <= t alone.
double flop_of(const TransformerOptions& o, std::int64_t sequences) {
  const auto n = [](std::int64_t size) { return static_cast<double>(size); };
  const double tokens = n(sequences * o.length), width = n(o.width), hidden = n(o.hidden);
  const double dense = n(o.blocks) * (4 * width * width + 2 * width * hidden) + width;
  const double attention = n(o.blocks) * (n(o.length) + 1) * width;
  return 2 * tokens * (3 * (dense + attention) + 2 * width);
}

void bench_peers(Report& report, Device device, const std::string& row) {
  add_training_peer(report, row, "PyTorch eager", device, "transformer_torch.py", "");
  add_training_peer(report, row, "torch.compile", device, "transformer_torch.py", "--compile");
  report.add_peers(row, {peer_time("jax", device, "transformer_jax.py", "")});
}

}  // namespace

void bench_transformer(Report& report, Device device, const Options& options) {
  const std::int64_t sequences = options.size(32, 2);
  TimedStep trial(device, sequences);
  trial.run();
  const double start = trial.loss();
  for (std::int64_t step = options.size(100, 20); step >= 0; --step) trial.run();
  const double end = trial.loss(), wanted = options.rehearse ? start : start / 10;
  check(end < wanted, "bench", "loss went from {} to {}, wanted less than {}", start, end, wanted);

  for (const int threads : thread_choices(device)) {
    const ThreadLimit limit(threads);
    TimedStep step(device, sequences);
    step.run();
    const Timing time = measure(device, [&] { step.run(); });
    const std::string row = fmt::format("transformer step, {} x {} values, 2 blocks of 64{}",
                                        sequences, step.net.options().length, on_threads(device));
    report.add({row, time, 0, flop_of(step.net.options(), sequences)});
    report.later([&report, device, row] { bench_peers(report, device, row); });
  }
}

}  // namespace keel::bench
