#include "sequence_figure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <span>

#include "../core/each_in_parallel.h"
#include "../core/max_or_nan.h"
#include "../core/random.h"
#include "../nn/flush_denormals.h"
#include "../nn/streams.h"
#include "../nn/transformer_step.h"
#include "../ntk/transformer_bound.h"
#include "toy_figure.h"

namespace keel {
namespace {

using Rows = std::vector<std::vector<double>>;

constexpr std::int64_t kLength = kTrainedTo - 1;
constexpr double kLearningRate = 1e-3;
constexpr double kFarBegin = 1e2, kFarEnd = 1e4;
constexpr std::int64_t kFarPoints = 21, kHeldOut = 256;

// Root mean square of a + b i, i = 1 .. 30: E[a^2] + E[b^2] times the mean of i^2.
double scale_of_values() { return std::sqrt(1 + (kTrainedTo + 1) * (2 * kTrainedTo + 1) / 6.0); }

/// Several members at once on a GPU; on a CPU one, a thread each.
struct Trained {
  Transformer net;
  std::vector<double> loss;  // a member each
};

// On the CPU, x and y [n, 29], or [S, n, 29]: by each member's seed and the stream.
struct Batch {
  Tensor x, y;
};
Batch draw_batch(const TransformerOptions& options, std::uint64_t stream, std::int64_t n) {
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
  const auto members = static_cast<std::int64_t>(options.seeds.size());
  const Shape shape = members > 1 ? Shape{members, n, kLength} : Shape{n, kLength};
  return {Tensor::from(x, shape).to(options.dtype), Tensor::from(y, shape).to(options.dtype)};
}

Trained train_group(const TransformerOptions& chosen, const SequenceOptions& options,
                    const std::function<void()>& stepped) {
  const FlushDenormals flush;
  Trained trained{Transformer(chosen), std::vector<double>(chosen.seeds.size())};
  TransformerStep training(trained.net, options.batch, AdamOptions{kLearningRate});
  const std::int64_t last_tenth = options.steps - std::max<std::int64_t>(options.steps / 10, 1);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const Batch batch =
        draw_batch(chosen, streams::sequences(static_cast<std::uint64_t>(step)), options.batch);
    training.run(batch.x, batch.y);
    if (step >= last_tenth) {
      const std::vector<double> now = training.loss().to_vector<double>();
      for (std::size_t s = 0; s < now.size(); ++s) trained.loss[s] += now[s];
    }
    stepped();
  }
  const double square = scale_of_values() * scale_of_values();
  for (std::size_t s = 0; s < chosen.seeds.size(); ++s) {
    trained.loss[s] *= square / static_cast<double>(options.steps - last_tenth);
    check(std::isfinite(trained.loss[s]), "fig7",
          "got loss {} at the end of the training of seed {}, wanted a finite one", trained.loss[s],
          chosen.seeds[s]);
  }
  return trained;
}

/// Predicts for all members of a net, in float64 and in the values' own size.
class Predictor {
 public:
  explicit Predictor(const Transformer& net) : net_(net.to(DType::f64)) {}

  std::int64_t members() const { return net_.members(); }

  /// What follows each member's windows, of at most 29 values each: windows[member][k].
  Rows next(const std::vector<Rows>& windows) const {
    const double scale = scale_of_values();
    const auto n = static_cast<std::int64_t>(windows[0].size());
    std::vector<double> x;
    for (const Rows& own : windows)
      for (const std::vector<double>& window : own) {
        for (double value : window) x.push_back(value / scale);
        x.resize(x.size() + kLength - window.size());  // zeros, behind what is asked for
      }
    const Shape shape = members() > 1 ? Shape{members(), n, kLength} : Shape{n, kLength};
    const Tensor placed = Tensor::from(x, shape).to(net_.flat().device());
    const std::vector<double> all = net_.predict(placed).to_vector<double>();
    Rows result(windows.size());
    std::size_t row = 0;
    for (std::size_t s = 0; s < windows.size(); ++s)
      for (const std::vector<double>& window : windows[s])
        result[s].push_back(scale * all[row++ * kLength + window.size() - 1]);
    return result;
  }

  /// The same windows for every member.
  Rows next_of(const Rows& windows) const {
    return next(std::vector<Rows>(static_cast<std::size_t>(members()), windows));
  }

 private:
  Transformer net_;
};

// The last values of x, as many as a net sees.
std::vector<double> window_of(const std::vector<double>& x) {
  const std::size_t count = std::min<std::size_t>(x.size(), kLength);
  return {x.end() - static_cast<std::ptrdiff_t>(count), x.end()};
}

std::vector<double> true_values(const LineOfValues& line, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 1; i <= count; ++i) values.push_back(line.at(i));
  return values;
}

// [member][i]: predictions at kBegin + 1 .. kEnd.
Rows one_step(const Predictor& predictor, const LineOfValues& line) {
  Rows windows;
  for (std::int64_t i = kBegin; i < kEnd; ++i) windows.push_back(window_of(true_values(line, i)));
  return predictor.next_of(windows);
}

Rows rollout(const Predictor& predictor, const LineOfValues& line) {
  const auto members = static_cast<std::size_t>(predictor.members());
  Rows values(members, true_values(line, kBegin)), predicted(members);
  for (std::int64_t i = kBegin; i < kEnd; ++i) {
    std::vector<Rows> windows;
    for (const std::vector<double>& own : values) windows.push_back({window_of(own)});
    const Rows next = predictor.next(windows);
    for (std::size_t s = 0; s < members; ++s) {
      values[s].push_back(next[s][0]);
      predicted[s].push_back(next[s][0]);
    }
  }
  return predicted;
}

// Of `largest` and the sizes of values.
double largest_of(double largest, const std::vector<double>& values) {
  for (double value : values) largest = max_or_nan(largest, std::abs(value));
  return largest;
}

void add_far_field(const Predictor& predictor, SequenceNet& net) {
  const std::vector<double> slopes = log_spaced(kFarBegin, kFarEnd, kFarPoints);
  const auto along = [&](double side) {
    Rows windows;
    for (double slope : slopes) windows.push_back(true_values({"", 0, side * slope}, kLength));
    return predictor.next_of(windows);
  };
  const Rows left = along(-1), right = along(1);
  for (std::size_t s = 0; s < left.size(); ++s) {
    net.exponents.push_back(far_field_exponent(slopes, left[s], right[s]));
    net.far_size.push_back((std::abs(left[s].back()) + std::abs(right[s].back())) / 2);
    net.largest.push_back(largest_of(largest_of(0, left[s]), right[s]));
  }
}

// Over sequences that no step of training draws.
std::vector<double> held_out_mse(const Transformer& net) {
  const Batch batch = draw_batch(net.options(), streams::inputs(), kHeldOut);
  const std::vector<double> got = net.predict(batch.x.to(net.flat().device())).to_vector<double>();
  const std::vector<double> wanted = batch.y.to_vector<double>();
  const auto each = static_cast<std::size_t>(kHeldOut * kLength);
  std::vector<double> result;
  for (std::size_t at = 0; at < got.size(); at += each) {
    const double root = scale_of_values() *
                        rmse(std::span(got).subspan(at, each), std::span(wanted).subspan(at, each));
    result.push_back(root * root);
  }
  return result;
}

void append(Rows& all, const Rows& more) { all.insert(all.end(), more.begin(), more.end()); }

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// `groups`: one kind of net, its seeds in order.
void add_net(SequenceRun& run, const std::string& name, std::span<const Trained> groups) {
  SequenceNet net{name, {}, {}, {}, {}, {}, {}};
  std::vector<SequencePanel> panels;
  for (const LineOfValues& line : shown_sequences())
    for (Continuation how : {Continuation::one_step, Continuation::rollout})
      panels.push_back({line, name, how, {}, {}, 0});
  for (const Trained& group : groups) {
    const Predictor predictor(group.net);
    append(net.loss, group.loss);
    append(net.mse, held_out_mse(group.net));
    add_far_field(predictor, net);
    for (std::int64_t s = 0; s < group.net.members() && group.net.options().layer_norm; ++s) {
      const Interval proved = bound_transformer(group.net, s);
      net.bound.push_back(scale_of_values() * std::max(-proved.low, proved.high));
    }
    for (SequencePanel& panel : panels)
      append(panel.curves, panel.how == Continuation::one_step
                               ? one_step(predictor, panel.sequence)
                               : rollout(predictor, panel.sequence));
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

std::int64_t sequence_steps(const SequenceOptions& options) {
  return 2 * options.seeds * options.steps;
}

SequenceRun run_sequence_figure(const SequenceOptions& options) {
  const bool at_once = options.device.is_cuda();
  const std::int64_t groups = at_once ? 1 : options.seeds;
  std::vector<TransformerOptions> chosen;
  for (const bool layer_norm : {false, true})
    for (std::int64_t group = 0; group < groups; ++group) {
      TransformerOptions one;
      one.length = kLength;
      one.layer_norm = layer_norm;
      one.device = options.device;
      one.seeds.clear();
      for (std::int64_t s = 0; s < options.seeds / groups; ++s)
        one.seeds.push_back(options.first_seed + static_cast<std::uint64_t>(group + s));
      chosen.push_back(one);
    }

  std::mutex mutex;
  std::int64_t done = 0;
  const auto stepped = [&](const TransformerOptions& one) {
    const std::lock_guard lock(mutex);
    done += static_cast<std::int64_t>(one.seeds.size());
    if (options.progress) options.progress(done);
  };
  std::vector<std::optional<Trained>> trained(chosen.size());
  const auto train_one = [&](std::size_t i) {
    trained[i] = train_group(chosen[i], options, [&] { stepped(chosen[i]); });
  };
  const auto begin = std::chrono::steady_clock::now();
  if (at_once)
    for (std::size_t i = 0; i < chosen.size(); ++i) train_one(i);
  else
    each_in_parallel(chosen.size(), train_one);

  SequenceRun run;
  run.training_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<Trained> all;
  for (std::optional<Trained>& one : trained) all.push_back(std::move(*one));
  const std::span<const Trained> both(all);
  add_net(run, "standard", both.first(all.size() / 2));
  add_net(run, "ln_embedding", both.last(all.size() / 2));
  return run;
}

}  // namespace keel
