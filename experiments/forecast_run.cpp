#include "forecast_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "../core/each_in_parallel.h"
#include "../core/random.h"
#include "../nn/streams.h"

namespace keel {
namespace {

Examples target_alone(const std::vector<double>& values, std::int64_t rows) {
  Examples examples;
  examples.rows = rows;
  examples.y.assign(values.begin(), values.begin() + rows);
  return examples;
}

void check_finite(const std::vector<double>& values, const char* of, std::int64_t first,
                  std::uint64_t seed) {
  for (std::size_t i = 0; i < values.size(); ++i)
    check(std::isfinite(values[i]), "forecast",
          "got {} for row {} (from 0) {}, seed {}, wanted a finite number", values[i],
          first + static_cast<std::int64_t>(i), of, seed);
}

void predict(const Series& series, const ForecastOptions& options, const Transformer& net,
             ForecastMember& member) {
  const SequencePredictor predictor(net, series.centre(), series.scale());
  const std::int64_t begin = series.trained(), end = series.size();
  const std::vector<double>& all = series.values();
  member.one_step = predictor.one_step(all, begin, end);
  member.rollout = predictor.rollout({all.begin(), all.begin() + begin}, end - begin);
  member.ahead = predictor.rollout(all, options.ahead);
  const std::uint64_t seed = net.options().seeds[0];
  check_finite(member.one_step, "one step ahead", begin, seed);
  check_finite(member.rollout, "by rollout", begin, seed);
  check_finite(member.ahead, "by rollout", end, seed);
}

}  // namespace

Series::Series(std::vector<double> values, std::int64_t trained)
    : values_(std::move(values)),
      trained_(trained),
      units_(Standardise::xy, target_alone(values_, trained)) {
  standardised_ = units_.y(target_alone(values_, size()));
}

SequenceBatch Series::draw_windows(const TransformerOptions& net, std::int64_t step,
                                   std::int64_t count) const {
  const std::int64_t length = net.length, windows = trained_ - length;
  std::vector<double> x, y;
  for (const std::uint64_t seed : net.seeds) {
    const RandomKey key{seed, streams::sequences(static_cast<std::uint64_t>(step))};
    for (double drawn : uniform({count}, key, DType::f64).to_vector<double>()) {
      const auto at = static_cast<std::int64_t>(drawn * static_cast<double>(windows));
      const auto from = standardised_.begin() + std::min(at, windows - 1);
      x.insert(x.end(), from, from + length);
      y.insert(y.end(), from + 1, from + length + 1);
    }
  }
  return batch_of(net, x, y);
}

Tensor Series::some_windows(std::int64_t length) const {
  return spread_windows({standardised_.begin(), standardised_.begin() + trained_}, length);
}

Forecast run_forecast(const Series& series, const ForecastOptions& options) {
  const auto draw = [&](const TransformerOptions& net, std::int64_t step) {
    return series.draw_windows(net, step, options.batch);
  };
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<TrainedTransformer> trained = train_transformers(
      {options.net}, options.first_seed, options.seeds,
      {"forecast", options.steps, options.batch, options.lr, draw, options.progress});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (options.trained) options.trained();

  std::vector<ForecastMember> members(trained.size());
  const auto examine = [&](std::size_t s) {
    members[s].loss = trained[s].loss;
    predict(series, options, trained[s].net, members[s]);
    const std::int64_t length = options.net.length;
    members[s].bound = bound_and_search(trained[s].net, series.some_windows(length),
                                        sequence_search(length, trained[s].net.options().seeds[0]),
                                        {}, "forecast");
  };
  if (options.net.device.is_cuda())
    for (std::size_t s = 0; s < members.size(); ++s) examine(s);
  else
    each_in_parallel(members.size(), examine);
  return {joined(trained), std::move(members), seconds};
}

}  // namespace keel
