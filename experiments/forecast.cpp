// keel forecast: transformers that continue a series of numbers, and a proof of how far they can
// go.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>

#include "../kernels/attention.h"
#include "../nn/transformer_weights.h"
#include "command.h"
#include "forecast_run.h"
#include "output.h"
#include "progress_bar.h"
#include "text_table.h"
#include "train_report.h"

namespace keel {
namespace {

struct Choice {
  std::string data, target, save, save_weights;
  std::optional<std::int64_t> hold_out;
  bool no_layer_norm = false;
  ForecastOptions options;
};

Series series_of(const Choice& choice) {
  const Table table = read_table(choice.data);
  const std::int64_t column = find_column(table, choice.target);
  std::vector<double> values;
  for (std::int64_t row = 0; row < table.rows; ++row) values.push_back(table.at(row, column));
  const std::int64_t held_out = choice.hold_out.value_or(table.rows / 10);
  const std::int64_t trained = table.rows - held_out, least = choice.options.net.length + 1;
  if (trained < least)
    throw DataError(
        choice.data,
        fmt::format("got {} rows, of which {} are held out, wanted at least {} to train "
                    "on: --length and one more",
                    table.rows, held_out, least));
  return {std::move(values), trained};
}

// Everything read, checked and tried before training starts.
struct Task {
  Task(const Choice& choice, const Context& context)
      : folder(context.options.out.empty() ? "out/forecast" : context.options.out),
        series(series_of(choice)),
        save(choice.save.empty() ? folder.path("forecast.csv").string() : choice.save) {
    for (const std::string& path : {save, choice.save_weights})
      if (!path.empty()) check_writable(path);
    check_apart({save, choice.save_weights, folder.path("summary.json").string()}, {choice.data});
  }
  OutputFolder folder;
  Series series;
  std::string save;
};

using OfMember = std::vector<double> ForecastMember::*;

MemberRows rows_of(const Forecast& forecast, OfMember which) {
  MemberRows rows;
  for (const ForecastMember& member : forecast.members) rows.push_back(member.*which);
  return rows;
}

// What was held out one step ahead, what was held out by rollout, and what lies behind the end.
std::string forecast_csv(const Forecast& forecast, const Series& series) {
  const bool ensemble = forecast.members.size() > 1;
  std::vector<std::string> header = {"row", "kind", "true", "prediction"};
  if (ensemble) header.push_back("std");
  for (std::uint64_t seed : forecast.net.options().seeds)
    if (ensemble) header.push_back(fmt::format("seed_{}", seed));
  Csv csv(header);
  const auto add = [&](const char* kind, OfMember which, std::int64_t first) {
    const MemberRows members = rows_of(forecast, which);
    std::vector<double> at(members.size());
    for (std::size_t i = 0; i < members[0].size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      for (std::size_t s = 0; s < at.size(); ++s) at[s] = members[s][i];
      csv.add(row).add(kind);
      if (row < series.size())
        csv.add(series.values()[static_cast<std::size_t>(row)]);
      else
        csv.add("");
      csv.add(mean_with_interval(at).mean);
      if (ensemble) csv.add(sample_deviation(at));
      for (double value : at)
        if (ensemble) csv.add(value);
      csv.end_row();
    }
  };
  add("one_step", &ForecastMember::one_step, series.trained());
  add("rollout", &ForecastMember::rollout, series.trained());
  add("forecast", &ForecastMember::ahead, series.size());
  return csv.text();
}

// The hull of all seeds' intervals, in the net's units; none without Layer Norm.
std::optional<Interval> proved_of(const Forecast& forecast) {
  std::optional<Interval> all = forecast.members[0].proved;
  for (const ForecastMember& member : forecast.members)
    if (all)
      all = {std::min(all->low, member.proved->low), std::max(all->high, member.proved->high)};
  return all;
}

const ForecastMember& largest_of(const Forecast& forecast) {
  return *std::max_element(forecast.members.begin(), forecast.members.end(),
                           [](const ForecastMember& a, const ForecastMember& b) {
                             return a.largest.value < b.largest.value;
                           });
}

Json interval_json(const Interval& interval) { return {interval.low, interval.high}; }

double size_of(const Interval& standardised) {
  return std::max(-standardised.low, standardised.high);
}

void add_proof(Json& numbers, const Forecast& forecast, const Series& series) {
  numbers["centre"] = series.centre();
  numbers["bounded"] = forecast.net.options().layer_norm;
  numbers["bound"] = nullptr;
  numbers["interval"] = nullptr;
  if (const std::optional<Interval> all = proved_of(forecast)) {
    numbers["bound"] = size_of(*all) * series.scale();
    numbers["interval"] = interval_json(series.in_own_units(*all));
    for (const ForecastMember& member : forecast.members)
      numbers["interval_by_seed"].push_back(interval_json(series.in_own_units(*member.proved)));
  }
  const ForecastMember& largest = largest_of(forecast);
  numbers["largest_found"] = largest.largest.value * series.scale();
  numbers["largest_found_at"] = {{"sequence", series.in_own_units(largest.largest.x)}};
  numbers["evaluations"] = largest.largest.evaluations;
  if (largest.beyond) {
    numbers["exceeded_by"] = largest.beyond->value * series.scale();
    numbers["exceeded_at"] = {{"sequence", series.in_own_units(largest.beyond->x)}};
  }
}

// To summary.json's numbers, and to the table for people.
void add_fits(Json& numbers, std::vector<std::vector<std::string>>& table, const Forecast& forecast,
              const Series& series) {
  const std::vector<double> wanted = series.held_out();
  if (wanted.empty()) return;
  const bool ensemble = forecast.members.size() > 1;
  table.push_back({"", "rows", "RMSE", "R^2"});
  const auto add = [&](const char* name, const MemberRows& rows, bool several) {
    const Fit fit = fit_of(rows, wanted);
    numbers[name] = {{"rmse", fit.rmse.mean}, {"r2", fit.r2.mean}};
    if (several)
      numbers[name].update({{"rmse_ci", fit.rmse.half_width},
                            {"r2_ci", fit.r2.half_width},
                            {"rmse_of_mean", fit.mean_rmse},
                            {"r2_of_mean", fit.mean_r2}});
    table.push_back({name, std::to_string(wanted.size()),
                     brief(fit.rmse.mean, fit.rmse.half_width, 4),
                     brief(fit.r2.mean, fit.r2.half_width, 4)});
    if (several)
      table.push_back({"  mean prediction", "", brief(fit.mean_rmse, 4), brief(fit.mean_r2, 4)});
  };
  add("one_step", rows_of(forecast, &ForecastMember::one_step), ensemble);
  add("rollout", rows_of(forecast, &ForecastMember::rollout), ensemble);
  // What anyone could have said: as before.
  const auto before = series.values().begin() + series.trained() - 1;
  add("value_before", {{before, before + static_cast<std::ptrdiff_t>(wanted.size())}}, false);
}

std::string text_of(const Forecast& forecast, const Series& series, const Choice& choice,
                    const Task& task, const Context& context,
                    const std::vector<std::vector<std::string>>& fits) {
  const std::string about =
      series.centre() == 0 ? "|f|" : fmt::format("|f - {}|", brief(series.centre(), 6));
  std::vector<std::vector<std::string>> facts;
  if (const std::optional<Interval> all = proved_of(forecast)) {
    const Interval own = series.in_own_units(*all);
    facts.push_back(
        {"proved: whatever the sequence, no prediction is outside",
         fmt::format("[{}, {}]", brief_outward(own.low, 5, -1), brief_outward(own.high, 5, 1))});
    facts.push_back(
        {"proved: " + about + " is at most", brief_outward(size_of(*all) * series.scale(), 5, 1)});
  } else {
    facts.push_back({"bound of " + about, "none: no Layer Norm"});
  }
  const ForecastMember& largest = largest_of(forecast);
  facts.push_back(
      {"largest " + about + " found", brief(largest.largest.value * series.scale(), 5)});
  if (largest.beyond)
    facts.push_back(
        {"farther out", brief(largest.beyond->value * series.scale(), 5) + " (summary.json)"});
  const std::int64_t seeds = choice.options.seeds;
  return fmt::format("{}{}{}{} predictions in {}; {} {} trained in {:.2f} s on {}\n",
                     fits.empty() ? "" : text_table(fits, 1), fits.empty() ? "" : "\n",
                     text_table(facts, 1), forecast.members[0].ahead.size(), task.save, seeds,
                     seeds == 1 ? "transformer" : "transformers", forecast.training_seconds,
                     context.device);
}

Json numbers_of(const Choice& choice, const Series& series, const Forecast& forecast,
                const Task& task) {
  const ForecastOptions& options = choice.options;
  std::vector<double> losses;
  for (const ForecastMember& member : forecast.members)
    losses.push_back(std::sqrt(member.loss) * series.scale());
  Json numbers = {{"data", choice.data},
                  {"target", choice.target},
                  {"rows", series.size()},
                  {"train_rows", series.trained()},
                  {"held_out_rows", series.size() - series.trained()},
                  {"length", options.net.length},
                  {"width", options.net.width},
                  {"heads", options.net.heads},
                  {"hidden", options.net.hidden},
                  {"blocks", options.net.blocks},
                  {"layer_norm", options.net.layer_norm},
                  {"steps", options.steps},
                  {"batch", options.batch},
                  {"lr", options.lr},
                  {"seeds", forecast.net.options().seeds},
                  {"ahead", options.ahead},
                  {"saved", task.save},
                  {"train_rmse", mean_with_interval(losses).mean},
                  {"training_seconds", forecast.training_seconds}};
  if (!choice.save_weights.empty()) numbers["saved_weights"] = choice.save_weights;
  return numbers;
}

int run(Choice choice, Context& context) {
  ForecastOptions& options = choice.options;
  options.net.layer_norm = !choice.no_layer_norm;
  options.net.device = context.device;
  options.first_seed = context.options.seed;
  if (options.net.width % options.net.heads != 0)
    throw UsageError("usage", fmt::format("got --width {} and --heads {}, wanted a multiple of the "
                                          "heads",
                                          options.net.width, options.net.heads));
  const Task task(choice, context);
  const Series& series = task.series;
  Forecast forecast = [&] {
    std::optional<ProgressBar> bar;
    bar.emplace("forecast", options.seeds * options.steps, context.shows_progress());
    std::optional<StatusLine> status;
    options.progress = [&](std::int64_t steps) { bar->update(steps); };
    options.trained = [&] {
      bar.reset();
      status.emplace(context.shows_progress());
      status->show("proving, and searching for the largest prediction ...");
    };
    return run_forecast(series, options);
  }();

  Json numbers = numbers_of(choice, series, forecast, task);
  std::vector<std::vector<std::string>> fits;
  add_fits(numbers, fits, forecast, series);
  add_proof(numbers, forecast, series);
  write_file(task.save, forecast_csv(forecast, series));
  if (!choice.save_weights.empty())
    save_transformer(
        forecast.net, choice.save_weights,
        {{"keel.centre", shortest(series.centre())}, {"keel.scale", shortest(series.scale())}});
  const Json summary = summarise(context, numbers);
  task.folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << text_of(forecast, series, choice, task, context, fits);
  return 0;
}

}  // namespace

Run declare_forecast(CLI::App& app) {
  const auto choice = std::make_shared<Choice>();
  ForecastOptions& options = choice->options;
  app.add_option("--data", choice->data,
                 "CSV or whitespace table, with or without a header; its rows follow each other")
      ->required();
  app.add_option("--target", choice->target,
                 "column that is the series: its name, or its number from 0, -1 the last")
      ->required();
  app.add_option("--hold-out", choice->hold_out,
                 "rows at the end to be judged by, and not trained on (default: a tenth)")
      ->check(check_whole(0, 1000000000));
  app.add_option("--ahead", options.ahead, "values to predict behind the last row")
      ->check(check_whole(0, 1000000))
      ->capture_default_str();
  app.add_option("--length", options.net.length, "values that a net sees at once")
      ->check(check_whole(1, kLongestSequence))
      ->capture_default_str();
  const auto size = [&](const char* name, std::int64_t& value, const char* what) {
    app.add_option(name, value, what)->check(check_whole(1, 1 << 16))->capture_default_str();
  };
  size("--width", options.net.width, "of what stands for a value");
  size("--heads", options.net.heads, "of attention, which divide the width");
  size("--hidden", options.net.hidden, "units of a ReLU layer");
  size("--blocks", options.net.blocks, "of attention and a ReLU layer");
  app.add_flag("--no-layernorm", choice->no_layer_norm,
               "leave out the Layer Norm behind the embedding: nothing is bounded then");
  app.add_option("--steps", options.steps, "of training")
      ->check(check_whole(1, 1000000000))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "windows a step, anywhere in what is trained on")
      ->check(check_whole(1, 1000000))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Adam's step size")
      ->check(check_positive)
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "nets, from seeds --seed, --seed + 1, ...")
      ->check(check_whole(1, 1000))
      ->capture_default_str();
  app.add_option("--save", choice->save,
                 "write predictions as CSV (default OUT/forecast.csv; rows count from 0)");
  app.add_option("--save-weights", choice->save_weights, "write the nets as .safetensors");
  app.footer("Writes summary.json into --out (default out/forecast).");
  return [choice](Context& context) { return run(*choice, context); };
}

}  // namespace keel
