#include "sequence_figure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "../core/max_or_nan.h"
#include "../core/random.h"
#include "../nn/streams.h"
#include "../ntk/transformer_bound.h"
#include "sequence_training.h"
#include "toy_figure.h"

namespace keel {
namespace {

constexpr std::int64_t kLength = kTrainedTo - 1;
constexpr double kSequenceRate = 1e-3;
constexpr std::int64_t kFarSlopes = 21, kHeldOut = 256;

// Root mean square of a + b i, i = 1 .. 30: E[a^2] + E[b^2] times the mean of i^2.
double scale_of_values() { return std::sqrt(1 + (kTrainedTo + 1) * (2 * kTrainedTo + 1) / 6.0); }

// n sequences a member, by its seed and the stream.
SequenceBatch draw_batch(const TransformerOptions& options, std::uint64_t stream, std::int64_t n) {
  const double scale = scale_of_values();
  std::vector<double> x, y;
  for (const std::uint64_t seed : options.seeds) {
    const std::vector<double> drawn =
        normal({n, 2}, {seed, stream}, 1, DType::f64).to_vector<double>();
    for (std::int64_t k = 0; k < n; ++k) {
      const LineOfValues line{"", drawn[2 * k], drawn[2 * k + 1]};
      for (std::int64_t i = 1; i < kTrainedTo; ++i) {
        x.push_back(line.at(i) / scale);
        y.push_back(line.at(i + 1) / scale);
      }
    }
  }
  return batch_of(options, x, y);
}

std::vector<double> true_values(const LineOfValues& line, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 1; i <= count; ++i) values.push_back(line.at(i));
  return values;
}

// Of `largest` and the sizes of values.
double largest_of(double largest, const std::vector<double>& values) {
  for (double value : values) largest = max_or_nan(largest, std::abs(value));
  return largest;
}

void add_far_field(const SequencePredictor& predictor, SequenceNet& net) {
  const auto along = [&](double side, const std::vector<double>& slopes) {
    std::vector<std::vector<double>> windows;
    for (double slope : slopes) windows.push_back(true_values({"", 0, side * slope}, kLength));
    return predictor.next(windows);
  };
  const std::vector<double> slopes = log_spaced(kFarBegin, kFarEnd, kFarSlopes),
                            left = along(-1, slopes), right = along(1, slopes);
  net.exponents.push_back(far_field_exponent(slopes, left, right));
  net.far_size.push_back((std::abs(left.back()) + std::abs(right.back())) / 2);
  net.largest.push_back(largest_of(largest_of(0, left), right));

  const std::vector<double> falling = along(-1, far_slopes()), rising = along(1, far_slopes());
  std::vector<double>& larger = net.far.emplace_back();
  for (std::size_t k = 0; k < rising.size(); ++k)
    larger.push_back(max_or_nan(std::abs(falling[k]), std::abs(rising[k])));
  net.largest.back() = largest_of(net.largest.back(), larger);
}

// Over sequences that no step of training draws.
double held_out_mse(const Transformer& net) {
  const SequenceBatch batch = draw_batch(net.options(), streams::inputs(), kHeldOut);
  const std::vector<double> got = net.predict(batch.x.to(net.flat().device())).to_vector<double>();
  const double root = scale_of_values() * rmse(got, batch.y.to_vector<double>());
  return root * root;
}

// Predictions at kBegin + 1 .. kEnd.
std::vector<double> continued(const SequencePredictor& predictor, const LineOfValues& line,
                              Continuation how) {
  if (how == Continuation::one_step)
    return predictor.one_step(true_values(line, kEnd), kBegin, kEnd);
  return predictor.rollout(true_values(line, kBegin), kEnd - kBegin);
}

// `members`: of one kind of net, its seeds in order.
void add_net(SequenceRun& run, const std::string& name,
             std::span<const TrainedTransformer> members) {
  SequenceNet net{.net = name};
  std::vector<SequencePanel> panels;
  for (const LineOfValues& line : shown_sequences())
    for (Continuation how : {Continuation::one_step, Continuation::rollout})
      panels.push_back({line, name, how, {}, {}, 0});
  const double scale = scale_of_values();
  for (const TrainedTransformer& member : members) {
    const SequencePredictor predictor(member.net, {0, scale});
    net.loss.push_back(scale * scale * member.loss);
    net.mse.push_back(held_out_mse(member.net));
    add_far_field(predictor, net);
    if (member.net.options().norms.bound_all()) {
      const Interval proved = bound_transformer(member.net);
      net.bound.push_back(scale * std::max(-proved.low, proved.high));
    }
    for (SequencePanel& panel : panels)
      panel.curves.push_back(continued(predictor, panel.sequence, panel.how));
  }
  for (SequencePanel& panel : panels) {
    for (std::size_t s = 0; s < panel.curves.size(); ++s) {
      net.largest[s] = largest_of(net.largest[s], panel.curves[s]);
      panel.largest = largest_of(panel.largest, panel.curves[s]);
    }
    panel.band = means_with_intervals(panel.curves);
    run.panels.push_back(std::move(panel));
  }
  run.nets.push_back(std::move(net));
}

}  // namespace

const std::vector<LineOfValues>& shown_sequences() {
  static const std::vector<LineOfValues> all = {
      {"rising", 0, 1}, {"falling", 1, -0.5}, {"steep", 0, 2}};
  return all;
}

const std::vector<double>& far_slopes() {
  static const std::vector<double> all = log_spaced(1, kFarEnd, 41);
  return all;
}

std::int64_t sequence_steps(const SequenceOptions& options) {
  return std::ssize(options.kinds) * options.seeds * options.steps;
}

SequenceRun run_sequence_figure(const SequenceOptions& options) {
  std::vector<TransformerOptions> kinds;
  for (const SequenceKind& kind : options.kinds)
    kinds.push_back({.length = kLength, .norms = kind.norms, .device = options.device});
  const auto draw = [&](const TransformerOptions& net, std::int64_t step) {
    return draw_batch(net, streams::sequences(static_cast<std::uint64_t>(step)), options.batch);
  };
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<TrainedTransformer> all = train_transformers(
      kinds, options.first_seed, options.seeds,
      {options.figure, options.steps, options.batch, kSequenceRate, draw, options.progress});
  SequenceRun run;
  run.training_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto seeds = static_cast<std::size_t>(options.seeds);
  for (std::size_t k = 0; k < kinds.size(); ++k)
    add_net(run, options.kinds[k].net, std::span(all).subspan(k * seeds, seeds));
  return run;
}

}  // namespace keel
