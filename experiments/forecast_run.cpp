#include "forecast_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "../core/random.h"
#include "../nn/streams.h"

namespace keel {
namespace {

SequenceUnits mean_and_deviation(const std::vector<double>& values, std::int64_t rows) {
  Examples examples;
  examples.rows = rows;
  examples.y.assign(values.begin(), values.begin() + rows);
  const Standardiser of(Standardise::xy, examples);
  return {of.y_mean(), of.y_scale()};
}

void predict(const Series& series, const ForecastOptions& options, const Transformer& net,
             ForecastMember& member) {
  const SequencePredictor predictor(net, series.units());
  const std::int64_t begin = series.trained(), end = series.size();
  const std::vector<double>& all = series.values();
  member.one_step = predictor.one_step(all, begin, end);
  member.rollout = predictor.rollout({all.begin(), all.begin() + begin}, end - begin);
  member.ahead = predictor.rollout(all, options.ahead);
  const std::uint64_t seed = net.options().seeds[0];
  check_finite(member.one_step, "forecast", "one step ahead", begin, seed);
  check_finite(member.rollout, "forecast", "by rollout", begin, seed);
  check_finite(member.ahead, "forecast", "by rollout", end, seed);
}

std::vector<TrainedTransformer> trained_on(const Series& series, const ForecastOptions& options) {
  const auto draw = [&](const TransformerOptions& net, std::int64_t step) {
    return series.draw_windows(net, step, options.batch);
  };
  return train_transformers(
      {options.net}, options.first_seed, options.seeds,
      {"forecast", options.steps, options.batch, options.lr, draw, options.progress});
}

std::vector<TrainedTransformer> given_to(const ForecastOptions& options) {
  std::vector<TrainedTransformer> nets;
  for (Transformer& net : members_of(*options.given))
    nets.push_back({std::move(net), std::numeric_limits<double>::quiet_NaN()});
  return nets;
}

}  // namespace

Series::Series(std::vector<double> values, std::int64_t trained, std::optional<SequenceUnits> units)
    : values_(std::move(values)), trained_(trained) {
  units_ = units ? *units : mean_and_deviation(values_, trained);
  standardised_ = units_.standardised(values_);
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
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<TrainedTransformer> nets =
      options.given ? given_to(options) : trained_on(series, options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (options.trained) options.trained();

  std::vector<ForecastMember> members(nets.size());
  const auto examine = [&](std::size_t s) {
    const auto& [net, loss] = nets[s];
    const std::int64_t length = net.options().length;
    members[s].loss = loss;
    predict(series, options, net, members[s]);
    members[s].bound =
        bound_and_search(net, series.some_windows(length),
                         sequence_search(length, net.options().seeds[0]), {}, "forecast");
  };
  each_net(nets[0].net.options().device, members.size(), examine);
  return {options.given ? options.given->clone() : joined(nets), std::move(members), seconds};
}

}  // namespace keel
