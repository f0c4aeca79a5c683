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
#include "forecast_report.h"
#include "output.h"
#include "plotting.h"
#include "progress_bar.h"
#include "statistics.h"
#include "text_table.h"

namespace keel {
namespace {

struct ForecastChoice {
  std::string data, target, weights, save_weights;
  std::optional<std::int64_t> hold_out;
  std::string norms = places_of({});
  bool no_layer_norm = false, rms_norm = false, no_plot = false;
  ForecastOptions options;
};

// Nets of --weights, and the units that they see a series in.
struct GivenNets {
  GivenNets(const SafeTensors& file, const std::string& path, const Context& context)
      : file(file),
        all(std::make_shared<const Transformer>(load_transformer(file, path, context.device))),
        units(units_of_file(file, path, context)) {}
  SafeTensors file;
  std::shared_ptr<const Transformer> all;
  SequenceUnits units;
};

std::optional<GivenNets> given_nets(const ForecastChoice& choice, const Context& context) {
  if (choice.weights.empty()) return {};
  return GivenNets(read_safetensors(choice.weights), choice.weights, context);
}

Series series_of(const ForecastChoice& choice, const std::optional<GivenNets>& given,
                 const Context& context) {
  std::vector<double> values = read_column(choice.data, choice.target);
  // Rows that nets were trained on judge nothing.
  const std::int64_t rows = std::ssize(values),
                     seen = given ? rows_trained_on(given->file, values) : 0,
                     held_out = choice.hold_out.value_or(std::min(rows / 10, rows - seen)),
                     trained = rows - held_out, least = given ? 1 : choice.options.net.length + 1;
  if (trained >= least && trained < seen)
    context.note(fmt::format("note: of the {} rows held out, the nets of {} were trained on {}",
                             held_out, choice.weights, std::min(seen - trained, held_out)));
  if (trained < least)
    throw DataError(
        choice.data,
        fmt::format("got {} rows, of which {} are held out, wanted at least {} to {}", rows,
                    held_out, least, given ? "go on from" : "train on: --length and one more"));
  return {std::move(values), trained, given ? std::optional(given->units) : std::nullopt};
}

constexpr const char *kPredictions = "forecast.csv", *kSeries = "series.csv";

// Everything read, checked and tried before training starts.
struct ForecastTask {
  ForecastTask(const ForecastChoice& choice, const Context& context)
      : folder(context.options.out.empty() ? "out/forecast" : context.options.out),
        given(given_nets(choice, context)),
        series(series_of(choice, given, context)) {
    if (!choice.save_weights.empty()) check_writable(choice.save_weights);
    std::vector<std::string> written = {choice.save_weights};
    for (const char* name : {kPredictions, kSeries, "summary.json"})
      written.push_back(folder.path(name).string());
    check_apart(written, {choice.data, choice.weights});
  }
  OutputFolder folder;
  std::optional<GivenNets> given;  // none: they are to be trained
  Series series;
};

Json numbers_of(const ForecastChoice& choice, const Series& series, const Forecast& forecast) {
  const ForecastOptions& options = choice.options;
  const TransformerOptions& net = forecast.net.options();
  Json numbers = {{"data", choice.data},      {"target", choice.target},
                  {"rows", series.size()},    {"held_out_rows", series.size() - series.trained()},
                  {"length", net.length},     {"width", net.width},
                  {"heads", net.heads},       {"hidden", net.hidden},
                  {"blocks", net.blocks},     {"norms", places_of(net.norms)},
                  {"norm", net.norms.kind()}, {"seeds", net.seeds},
                  {"ahead", options.ahead}};
  if (options.given) {
    numbers["weights"] = choice.weights;
    return numbers;
  }
  std::vector<double> losses;
  for (const ForecastMember& member : forecast.members)
    losses.push_back(std::sqrt(member.loss) * series.units().scale);
  numbers.update({{"train_rows", series.trained()},
                  {"steps", options.steps},
                  {"batch", options.batch},
                  {"lr", options.lr},
                  {"train_rmse", mean_with_interval(losses).mean},
                  {"training_seconds", forecast.training_seconds}});
  if (!choice.save_weights.empty()) numbers["saved_weights"] = choice.save_weights;
  return numbers;
}

int run(ForecastChoice choice, Context& context) {
  ForecastOptions& options = choice.options;
  options.net.norms = *norms_at(choice.no_layer_norm ? "none" : choice.norms);
  options.net.norms.centred = !choice.rms_norm;
  if (choice.rms_norm && places_of(options.net.norms) == "none")
    throw UsageError("usage", "got --rmsnorm and no norms, wanted one of them");
  options.net.device = context.device;
  options.first_seed = context.options.seed;
  if (options.net.width % options.net.heads != 0)
    throw UsageError("usage", fmt::format("got --width {} and --heads {}, wanted a multiple of the "
                                          "heads",
                                          options.net.width, options.net.heads));
  const ForecastTask task(choice, context);
  const Series& series = task.series;
  if (task.given) options.given = task.given->all;
  Forecast forecast = [&] {
    std::optional<ProgressBar> bar;
    if (!options.given)
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

  Json numbers = numbers_of(choice, series, forecast);
  const bool given = options.given != nullptr;
  const TextRows fits = add_fits(numbers, forecast, series, given, context),
                 facts = add_proof(numbers, forecast, series);
  if (!choice.save_weights.empty()) {
    auto notes = notes_of(series.units());
    notes.merge(note_of_training(series.values(), series.trained()));
    save_transformer(forecast.net, choice.save_weights, notes);
  }
  Json summary = summarise(context, numbers);
  task.folder.write({{kPredictions, forecast_csv(forecast, series)},
                     {kSeries, series_csv(series)},
                     {"summary.json", json_text(summary)}});
  const bool draws = !choice.no_plot && (options.ahead > 0 || !series.held_out().empty());
  const std::string problem = draws ? draw("forecast", task.folder, context, summary) : "";
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << (fits.empty() ? "" : text_table(fits, 1) + "\n") << text_table(facts, 1)
                << fmt::format("{} predictions in {}; {} {} {}\n", options.ahead,
                               task.folder.path(kPredictions).string(), forecast.members.size(),
                               forecast.members.size() == 1 ? "transformer" : "transformers",
                               options.given
                                   ? "of " + choice.weights
                                   : fmt::format("trained in {:.2f} s on {}",
                                                 forecast.training_seconds, context.device));
  if (problem.empty()) return 0;
  context.err << fmt::format("keel: {}\n", problem);
  return 1;
}

std::string check_norms(const std::string& places) {
  return norms_at(places) ? "" : fmt::format("got '{}', wanted {}", places, kNormPlaces);
}

}  // namespace

Run declare_forecast(CLI::App& app) {
  const auto choice = std::make_shared<ForecastChoice>();
  ForecastOptions& options = choice->options;
  app.add_option("--data", choice->data,
                 "CSV or whitespace table, with or without a header; its rows follow each other")
      ->required();
  app.add_option("--target", choice->target,
                 "column that is the series: its name, or its number from 0, -1 the last")
      ->required();
  app.add_option("--hold-out", choice->hold_out,
                 "rows at the end to be judged by, and not trained on (default: a tenth; of "
                 "--weights those of it that they were not trained on)")
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
  CLI::Option* const norms =
      app.add_option("--norms", choice->norms, fmt::format("where norms stand: {}", kNormPlaces))
          ->check(check_norms)
          ->capture_default_str();
  app.add_flag("--no-layernorm", choice->no_layer_norm, "as --norms none: nothing is bounded then")
      ->excludes(norms);
  app.add_flag("--rmsnorm", choice->rms_norm, "RMSNorms in place of Layer Norms");
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
  app.add_option("--save-weights", choice->save_weights, "write the nets as .safetensors");
  app.add_option("--weights", choice->weights,
                 "train nothing: the nets of this file, of --save-weights, in its units");
  app.add_flag("--no-plot", choice->no_plot, "draw no picture");
  app.footer(
      "Writes forecast.csv (rows count from 0), series.csv, summary.json and, with matplotlib, a "
      "picture into --out (default out/forecast).");
  return [choice, &app](Context& context) {
    if (!choice->weights.empty())
      for (const char* name :
           {"--length", "--width", "--heads", "--hidden", "--blocks", "--norms", "--no-layernorm",
            "--rmsnorm", "--steps", "--batch", "--lr", "--seeds", "--seed", "--save-weights"})
        if (app.count(name) > 0)
          throw UsageError("usage", fmt::format("{} is of a training: the nets of --weights are "
                                                "trained",
                                                name));
    return run(*choice, context);
  };
}

}  // namespace keel
