#include "forecast_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "../core/each_in_parallel.h"
#include "../core/max_or_nan.h"
#include "../core/random.h"
#include "../nn/streams.h"
#include "../ntk/certificate.h"
#include "../ntk/transformer_bound.h"

namespace keel {
namespace {

Examples target_alone(const std::vector<double>& values, std::int64_t rows) {
  Examples examples;
  examples.rows = rows;
  examples.y.assign(values.begin(), values.begin() + rows);
  return examples;
}

// |f| at the place where it is largest, for each sequence of x [m, length].
RowFunction largest_prediction(const Transformer& net) {
  return [&net](const Tensor& x) {
    const auto length = static_cast<std::size_t>(net.options().length);
    const std::vector<double> all = predict_in_blocks(net, x.to_vector<double>());
    std::vector<double> sizes;
    for (std::size_t at = 0; at < all.size(); at += length) {
      double largest = 0;
      for (std::size_t t = 0; t < length; ++t) largest = max_or_nan(largest, std::abs(all[at + t]));
      sizes.push_back(largest);
    }
    return sizes;
  };
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

// Rays and gradient ascent of some seconds at the lengths of Figure 7. A longer sequence takes more
// for each prediction, and has more coordinates to go along: there are fewer radii then, and steps.
SearchOptions search_options(std::int64_t length, std::uint64_t seed) {
  const double share = std::min(29.0 / static_cast<double>(length), 1.0);
  SearchOptions options;
  options.directions = 64;
  options.radii = std::max<std::int64_t>(std::llround(17 * share), 2);
  options.climbers = 4;
  options.steps = std::llround(50 * share * share);
  options.seed = seed;
  return options;
}

void search(const Series& series, const Transformer& net, ForecastMember& member) {
  const Transformer precise = net.to(DType::f64);
  const std::uint64_t seed = net.options().seeds[0];
  const RowFunction size = largest_prediction(precise);
  const std::int64_t length = net.options().length;
  member.largest =
      search_largest(size, length, series.some_windows(length), search_options(length, seed));
  if (!member.proved) {
    if (member.largest.distance() > 0)
      member.beyond = exceed(size, member.largest.x, 1000 * member.largest.value);
    return;
  }
  const double bound = std::max(-member.proved->low, member.proved->high);
  check(member.largest.value <= bound * (1 + 1e-6), "forecast",
        "found |f| = {} of seed {}, in units of the deviation, more than the {} that was proved: "
        "keel is wrong",
        member.largest.value, seed, bound);
}

}  // namespace

Series::Series(std::vector<double> values, std::int64_t trained)
    : values_(std::move(values)),
      trained_(trained),
      units_(Standardise::xy, target_alone(values_, trained)) {
  standardised_ = units_.y(target_alone(values_, size()));
}

Interval Series::in_own_units(const Interval& standardised) const {
  return {units_.y_in_own_units(standardised.low), units_.y_in_own_units(standardised.high)};
}

std::vector<double> Series::in_own_units(const std::vector<double>& standardised) const {
  return units_.y_in_own_units(standardised);
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
  constexpr std::int64_t kMost = 32;
  const std::int64_t windows = trained_ - length, count = std::min(windows, kMost);
  std::vector<double> some;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = standardised_.begin() + i * windows / count;
    some.insert(some.end(), from, from + length);
  }
  return Tensor::from(some, {count, length});
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
    if (options.net.layer_norm) members[s].proved = bound_transformer(trained[s].net);
    search(series, trained[s].net, members[s]);
  };
  if (options.net.device.is_cuda())
    for (std::size_t s = 0; s < members.size(); ++s) examine(s);
  else
    each_in_parallel(members.size(), examine);
  return {joined(trained), std::move(members), seconds};
}

}  // namespace keel
