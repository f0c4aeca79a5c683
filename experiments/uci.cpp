// keel reproduce uci: small regression sets, by infinitely wide nets with and without Layer Norm,
// by trained nets, and by gradient-boosted trees.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "../core/random.h"
#include "../nn/streams.h"
#include "../nn/trainer.h"
#include "boosting.h"
#include "examples.h"
#include "progress_bar.h"
#include "reproduce.h"
#include "ridge_choice.h"
#include "standardiser.h"
#include "statistics.h"
#include "text_table.h"
#include "theory_setting.h"
#include "toy_figure.h"

namespace keel {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUciEpochs = 1000, kSplits = 5;

struct Set {
  std::string name;
  Table table;
  std::int64_t target = 0;
  std::vector<std::int64_t> features;
};

// Column numbers, one a line or side by side.
std::vector<std::int64_t> read_columns(const fs::path& path, std::int64_t cols) {
  std::vector<std::int64_t> columns;
  for (double value : read_table(path.string()).values) {
    if (value < 0 || value >= static_cast<double>(cols) || value != std::floor(value))
      throw DataError(path.string(),
                      fmt::format("got column {}, wanted one from 0 to {}", value, cols - 1));
    columns.push_back(static_cast<std::int64_t>(value));
  }
  return columns;
}

std::vector<Set> read_sets(const std::string& folder) {
  std::error_code problem;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (fs::exists(entry.path() / "data.txt")) paths.push_back(entry.path());
  if (problem || paths.empty())
    throw DataError(folder,
                    "wanted a folder of folders, each with data.txt, index_features.txt and "
                    "index_target.txt (columns, from 0)");
  std::sort(paths.begin(), paths.end());
  std::vector<Set> sets;
  for (const fs::path& path : paths) {
    Set set{path.filename().string(), read_table((path / "data.txt").string(), 10), 0, {}};
    set.features = read_columns(path / "index_features.txt", set.table.cols);
    set.target = read_columns(path / "index_target.txt", set.table.cols).at(0);
    if (std::find(set.features.begin(), set.features.end(), set.target) != set.features.end())
      throw DataError((path / "index_features.txt").string(),
                      fmt::format("got column {}, which is the target", set.target));
    sets.push_back(std::move(set));
  }
  return sets;
}

struct Split {
  Examples training, test;
  Standardiser standardiser;
};

// A random tenth of the rows is for testing.
Split split_of(const Set& set, std::uint64_t seed) {
  const std::vector<std::int64_t> order = permutation(set.table.rows, {seed, streams::split()});
  const std::size_t test = order.size() / 10;
  const Examples all = gathered(set.table, set.features, set.target);
  const Examples training = examples_at(all, std::span(order).subspan(test));
  return {training, examples_at(all, std::span(order).first(test)),
          Standardiser(Standardise::xy, training)};
}

double by_kernel(const std::string& net, const Split& split, const Context& context) {
  const Standardiser& units = split.standardiser;
  const auto kernel =
      paper_kernel(toy_net(net, "relu").spec, split.training.features, context.device);
  const Tensor x = units.inputs(split.training, context.device);
  const Tensor y = units.targets(split.training, context.device);
  RegressionOptions solver;
  solver.ridge.relative = choose_ridge(kernel, x, y, 2000).relative;
  const Tensor predicted =
      Regression(kernel, x, y, solver).predict(units.inputs(split.test, context.device));
  return rmse(units.y_in_own_units(predicted.to_vector<double>()), split.test.y);
}

double by_training(const std::string& net, const Split& split, std::uint64_t seed,
                   std::int64_t epochs, const Context& context) {
  const Standardiser& units = split.standardiser;
  NetOptions options;
  options.seed = seed;
  options.device = context.device;
  Net trained(toy_net(net, "relu").spec, split.training.features, options);
  TrainOptions training;
  training.epochs = epochs;
  training.optimiser = AdamOptions{1e-3};
  train(trained, units.inputs(split.training, context.device).to(DType::f32),
        units.targets(split.training, context.device).to(DType::f32), training);
  const Tensor predicted = trained.predict(units.inputs(split.test, context.device).to(DType::f32));
  return rmse(units.y_in_own_units(predicted.to_vector<double>()), split.test.y);
}

struct Method {
  const char* name;
  const char* label;
};
constexpr Method kMethods[] = {{"ntk_standard", "infinite, no LN"},
                               {"ntk_ln_every", "infinite, LN every"},
                               {"standard", "trained, no LN"},
                               {"ln_every", "trained, LN every"},
                               {"xgboost", "XGBoost"}};

double run_method(const std::string& method, const Split& split, std::uint64_t seed,
                  std::int64_t epochs, const Context& context) {
  if (method.starts_with("ntk_")) return by_kernel(method.substr(4), split, context);
  if (method == "xgboost") return rmse(Boosting(split.training).predict(split.test), split.test.y);
  return by_training(method, split, seed, epochs, context);
}

}  // namespace

Reproduced reproduce_uci(const Context& context, const ReproduceOptions& chosen,
                         const OutputFolder& folder) {
  if (chosen.table1.data.empty())
    throw UsageError("uci",
                     "wanted --data FOLDER: folders with data.txt, index_features.txt and "
                     "index_target.txt, as in the experiments of Hernandez-Lobato and Adams "
                     "(2015)");
  const std::vector<Set> sets = read_sets(chosen.table1.data);
  const std::int64_t splits = chosen.seeds.value_or(kSplits);
  const std::int64_t epochs = chosen.epochs.value_or(kUciEpochs);
  std::vector<Method> methods;
  std::vector<std::string> header = {"data", "rows", "features"};
  for (const Method& method : kMethods) {
    if (method.name == std::string("xgboost") && !has_boosting()) {
      context.note("xgboost: left out, this build has no XGBoost (Debian: libxgboost-dev)");
      continue;
    }
    methods.push_back(method);
    header.push_back(method.label);
  }
  Csv csv({"dataset", "method", "split", "rmse"});
  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {header};
  double work = 0, done = 0;  // rows, roughly what a method's time goes with
  for (const Set& set : sets) work += static_cast<double>(set.table.rows);
  ProgressBar bar("uci", 1000, context.shows_progress());
  for (const Set& set : sets) {
    const std::int64_t features = static_cast<std::int64_t>(set.features.size());
    std::vector<std::string> line = {set.name, std::to_string(set.table.rows),
                                     std::to_string(features)};
    for (const Method& method : methods) {
      std::vector<double> errors;
      for (std::int64_t s = 0; s < splits; ++s) {
        const std::uint64_t seed = context.options.seed + static_cast<std::uint64_t>(s);
        errors.push_back(run_method(method.name, split_of(set, seed), seed, epochs, context));
        csv.add(set.name).add(method.name).add(std::to_string(seed)).add(errors.back());
        csv.end_row();
        done += static_cast<double>(set.table.rows) /
                static_cast<double>(splits * static_cast<std::int64_t>(methods.size()));
        bar.update(static_cast<std::int64_t>(1000 * done / work));
      }
      const Estimate estimate = mean_with_interval(errors);
      line.push_back(brief(estimate.mean, estimate.half_width, 2));
      rows.push_back({{"dataset", set.name},
                      {"rows", set.table.rows},
                      {"features", features},
                      {"method", method.name},
                      {"rmse", estimate.mean},
                      {"rmse_ci", estimate.half_width}});
    }
    table.push_back(std::move(line));
  }
  folder.write("uci.csv", csv.text());
  Reproduced result;
  result.draws = false;
  result.numbers = {{"splits", splits}, {"epochs", epochs}, {"rows", rows}};
  result.table = fmt::format(
      "uci: RMSE on a random tenth of the rows, mean +- 95% interval over {} splits; 2 x 128 ReLU, "
      "{} "
      "epochs of full-batch Adam; ridge chosen on held-out training rows\n{}",
      splits, epochs, text_table(table, 1));
  return result;
}

}  // namespace keel
