#include "toy_figure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>

#include "../core/each_in_parallel.h"
#include "../nn/frozen.h"
#include "../nn/trainer.h"
#include "../ntk/net_bound.h"

namespace keel {
namespace {

using Curves = std::vector<std::vector<double>>;

constexpr std::int64_t kFarInputs = 41;  // a side
constexpr double kToyRate = 1e-3;

// Predictions of each member at the points x.
Curves predict(const Net& net, const std::vector<double>& x, Device device) {
  const auto n = static_cast<std::int64_t>(x.size());
  // Rounded to float32, as in training, whatever the net has now.
  const Tensor inputs = rows_of(x, 1).to(DType::f32).to(device).to(net.flat().dtype());
  const std::vector<double> all = net.predict(inputs).to_vector<double>();
  Curves rows;
  for (auto row = all.begin(); row != all.end(); row += n) rows.emplace_back(row, row + n);
  return rows;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double mean_square_error(const std::vector<double>& predicted, const std::vector<double>& wanted) {
  const double root = rmse(predicted, wanted);
  return root * root;
}

std::vector<double> values_of(const ToyData& data, const std::vector<double>& x) {
  std::vector<double> y;
  for (double at : x) y.push_back(data.f(at));
  return y;
}

// [S, n, 1]: the members of one data set after those of another.
Tensor targets(const std::vector<double>& x, const ToyOptions& options) {
  std::vector<double> all;
  for (const ToyData& data : toy_data())
    for (std::int64_t seed = 0; seed < options.seeds; ++seed)
      for (double y : values_of(data, x)) all.push_back(y);
  const auto members = static_cast<std::int64_t>(toy_data().size()) * options.seeds;
  return Tensor::from(all, {members, kToyPoints, 1}).to(DType::f32).to(options.device);
}

// Of one input boxes close sooner than any dual.
void prove_panel(ToyPanel& panel, const Net& net, std::int64_t first, std::int64_t seeds) {
  constexpr std::int64_t kBoxes = 40000;
  panel.closed = true;
  for (std::int64_t s = first; s < first + seeds; ++s) {
    const NetBound bound = bound_net(net.member(s).to(DType::f64), {.pieces = 0, .boxes = kBoxes});
    panel.closed = panel.closed && bound.closed;
    if (bound.bounded) panel.proved.push_back(bound.outputs[0]);
  }
}

// What the figure shows of one trained ensemble: one panel a data set.
void add_panels(ToyRun& run, const ToyNet& toy, const Net& net, const ToyOptions& options) {
  const std::vector<double> far = log_spaced(kFarBegin, kFarEnd, kFarInputs);
  std::vector<double> far_left;
  for (double x : far) far_left.push_back(-x);
  const Curves at_data = predict(net, run.training_x, options.device);
  const Curves curves = predict(net, run.x, options.device);
  const Curves left = predict(net, far_left, options.device);
  const Curves right = predict(net, far, options.device);
  std::size_t member = 0;
  for (const ToyData& data : toy_data()) {
    ToyPanel panel{.data = &data, .net = toy};
    const std::vector<double> wanted = values_of(data, run.training_x);
    for (std::int64_t seed = 0; seed < options.seeds; ++seed, ++member) {
      panel.curves.push_back(curves[member]);
      panel.train_mse.push_back(mean_square_error(at_data[member], wanted));
      panel.exponents.push_back(far_field_exponent(far, left[member], right[member]));
      panel.far_size.push_back((std::abs(left[member].back()) + std::abs(right[member].back())) /
                               2);
    }
    panel.band = means_with_intervals(panel.curves);
    const auto begin = std::chrono::steady_clock::now();
    prove_panel(panel, net, static_cast<std::int64_t>(member) - options.seeds, options.seeds);
    run.proof_seconds += seconds_since(begin);
    run.panels.push_back(std::move(panel));
  }
}

// Trains all nets; on a GPU at the same time, each on a stream of its own.
void train_all(std::vector<Net>& nets, const Tensor& x, const Tensor& y,
               const ToyOptions& options) {
  std::mutex progress_mutex;  // of what follows
  std::vector<std::int64_t> done(nets.size(), 0);
  const auto learn = [&](std::size_t i) {
    TrainOptions training;
    training.epochs = options.epochs;
    training.optimiser = AdamOptions{kToyRate};
    training.sharers = static_cast<int>(nets.size());
    if (options.progress)
      training.progress = [&, i](const Progress& progress) {
        const std::lock_guard lock(progress_mutex);
        done[i] = progress.epochs_done;
        options.progress(std::reduce(done.begin(), done.end()));
      };
    train(nets[i], x, y, training);
  };
  each_on(options.device, nets.size(), learn);
}

}  // namespace

Interval ToyPanel::proved_of_all() const {
  Interval all = proved.at(0);
  for (const Interval& one : proved)
    all = {std::min(all.low, one.low), std::max(all.high, one.high)};
  return all;
}

const std::vector<ToyData>& toy_data() {
  static const std::vector<ToyData> all = {
      {"sinusoid", "y = sin(x)", [](double x) { return std::sin(x); }},
      {"linear", "y = x / 2", [](double x) { return x / 2; }},
      {"quadratic", "y = x^2 / 5", [](double x) { return x * x / 5; }},
  };
  return all;
}

std::vector<double> evenly_spaced(double begin, double end, std::int64_t count) {
  std::vector<double> points;
  for (std::int64_t i = 0; i < count; ++i)
    points.push_back(begin +
                     (end - begin) * static_cast<double>(i) / static_cast<double>(count - 1));
  return points;
}

std::vector<double> log_spaced(double begin, double end, std::int64_t count) {
  std::vector<double> points = evenly_spaced(std::log(begin), std::log(end), count);
  for (double& point : points) point = std::exp(point);
  return points;
}

Tensor rows_of(const std::vector<double>& values, std::int64_t width) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size()) / width, width});
}

ToyNet toy_net(const std::string& net, const std::string& activation) {
  constexpr std::pair<std::string_view, const char*> kNorms[] = {
      {"ln_", "layernorm "}, {"rms_", "rmsnorm "}, {"bn_", "batchnorm "}};
  std::string where, norm;
  for (const auto& [begin, word] : kNorms)
    if (net.starts_with(begin)) {
      where = net.substr(begin.size());
      norm = word;
    }
  const bool first = where == "first" || where == "every";
  const bool second = where == "second" || where == "every";
  check(first || second || net == "standard", "toy_net",
        "got net '{}', wanted standard, or first, second or every behind ln_, rms_ or bn_", net);
  return {net, activation,
          fmt::format("dense(128) {}{} dense(128) {}{} dense(1)", first ? norm : "", activation,
                      second ? norm : "", activation)};
}

double far_field_exponent(const std::vector<double>& x, const std::vector<double>& left,
                          const std::vector<double>& right) {
  const auto logs = [](const std::vector<double>& values) {
    std::vector<double> result;
    for (double v : values)  // an exact zero has no logarithm; the smallest double stands for it
      result.push_back(std::log(std::max(std::abs(v), std::numeric_limits<double>::min())));
    return result;
  };
  const std::vector<double> log_x = logs(x);
  return (least_squares_slope(log_x, logs(left)) + least_squares_slope(log_x, logs(right))) / 2;
}

std::int64_t toy_epochs(std::size_t nets, const ToyOptions& options) {
  return static_cast<std::int64_t>(nets * toy_data().size()) * options.seeds * options.epochs;
}

ToyRun run_toy_figure(const std::vector<ToyNet>& nets, const ToyOptions& options) {
  ToyRun run;
  run.training_x = evenly_spaced(-kToyEnd, kToyEnd, kToyPoints);
  run.x = evenly_spaced(-kCurveEnd, kCurveEnd, kCurvePoints);
  const Tensor x = rows_of(run.training_x, 1).to(DType::f32).to(options.device);
  const Tensor y = targets(run.training_x, options);

  NetOptions net_options;
  net_options.device = options.device;
  for (std::size_t i = 0; i < toy_data().size(); ++i)
    for (std::int64_t seed = 0; seed < options.seeds; ++seed)
      net_options.seeds.push_back(options.first_seed + static_cast<std::uint64_t>(seed));
  std::vector<Net> made;
  for (const ToyNet& toy : nets) made.emplace_back(toy.spec, 1, net_options);
  const auto begin = std::chrono::steady_clock::now();
  train_all(made, x, y, options);
  run.training_seconds = seconds_since(begin);
  for (std::size_t i = 0; i < nets.size(); ++i)
    add_panels(run, nets[i], frozen(made[i], x), options);
  return run;
}

}  // namespace keel
