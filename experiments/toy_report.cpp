#include "toy_report.h"

#include <algorithm>

#include "progress_bar.h"
#include "text_table.h"

namespace keel {
namespace {

std::string curves_csv(const ToyRun& run, const ToyOptions& options) {
  std::vector<std::string> header = {"dataset", "net",    "activation", "x",
                                     "mean",    "ci_low", "ci_high"};
  for (std::int64_t seed = 0; seed < options.seeds; ++seed)
    header.push_back(fmt::format("seed_{}", options.first_seed + static_cast<std::uint64_t>(seed)));
  Csv csv(header);
  for (const ToyPanel& panel : run.panels)
    for (std::size_t i = 0; i < run.x.size(); ++i) {
      const Estimate& at = panel.band[i];
      csv.add(panel.data->name).add(panel.net.net).add(panel.net.activation).add(run.x[i]);
      csv.add(at.mean).add(at.mean - at.half_width).add(at.mean + at.half_width);
      for (const auto& curve : panel.curves) csv.add(static_cast<float>(curve[i]));
      csv.end_row();
    }
  return csv.text();
}

std::string training_csv(const ToyRun& run) {
  Csv csv({"dataset", "x", "y"});
  for (const ToyData& data : toy_data())
    for (double x : run.training_x) csv.add(data.name).add(x).add(data.f(x)).end_row();
  return csv.text();
}

Json panel_json(const ToyPanel& panel) {
  const Estimate mse = mean_with_interval(panel.train_mse);
  const Estimate exponent = mean_with_interval(panel.exponents);
  const Estimate far = mean_with_interval(panel.far_size);
  const Estimate &left = panel.band.front(), &right = panel.band.back();
  return {{"dataset", panel.data->name},
          {"net", panel.net.net},
          {"activation", panel.net.activation},
          {"spec", panel.net.spec},
          {"train_mse", mse.mean},
          {"train_mse_ci", mse.half_width},
          {"train_mse_by_seed", panel.train_mse},
          {"far_end_x", kCurveEnd},
          {"far_end_prediction", right.mean},
          {"far_end_ci", right.half_width},
          {"far_end_prediction_left", left.mean},
          {"far_end_ci_left", left.half_width},
          {"far_field_exponent", exponent.mean},
          {"far_field_exponent_ci", exponent.half_width},
          {"far_field_exponent_by_seed", panel.exponents},
          {"far_field_size", far.mean},
          {"far_field_size_ci", far.half_width}};
}

// Of every x: an interval a seed, and the one that holds all.
void add_proved(const ToyPanel& panel, Json& json) {
  if (panel.proved.empty()) return;
  const auto pair = [](const Interval& of) { return Json{of.low, of.high}; };
  json["proved"] = pair(panel.proved_of_all());
  json["proved_by_seed"] = Json::array();
  for (const Interval& one : panel.proved) json["proved_by_seed"].push_back(pair(one));
  json["proved_closed"] = panel.closed;
}

std::string proved_text(const ToyPanel& panel) {
  if (panel.proved.empty()) return "nothing";
  const Interval all = panel.proved_of_all();
  return fmt::format("[{}, {}]", brief_outward(all.low, 3, -1), brief_outward(all.high, 3, 1));
}

std::string panel_table(const ToyRun& run) {
  std::vector<std::vector<std::string>> rows = {{"data", "net", "activation", "train MSE", "f(25)",
                                                 "mean |f(+-1e4)|", "growth exponent",
                                                 "proved of every x: f in"}};
  for (const ToyPanel& panel : run.panels) {
    const Estimate mse = mean_with_interval(panel.train_mse);
    const Estimate& end = panel.band.back();
    rows.push_back(
        {panel.data->name, panel.net.net, panel.net.activation, brief(mse.mean, mse.half_width, 2),
         brief(end.mean, end.half_width, 3), brief(mean_with_interval(panel.far_size).mean),
         fmt::format("{:.3f}", mean_with_interval(panel.exponents).mean), proved_text(panel)});
  }
  return text_table(rows, 3);
}

}  // namespace

Reproduced reproduce_toy(const std::string& name, const std::vector<ToyNet>& nets,
                         const Context& context, const ReproduceOptions& chosen,
                         const OutputFolder& folder) {
  ToyOptions options;
  options.seeds = chosen.seeds.value_or(options.seeds);
  options.epochs = chosen.epochs.value_or(options.epochs);
  options.first_seed = context.options.seed;
  options.device = context.device;
  ToyRun run;
  {
    ProgressBar bar(name, toy_epochs(nets.size(), options), context.shows_progress());
    options.progress = [&](std::int64_t epochs) { bar.update(epochs); };
    run = run_toy_figure(nets, options);
  }
  folder.write("curves.csv", curves_csv(run, options));
  folder.write("training.csv", training_csv(run));

  Reproduced result;
  Json data = Json::array(), panels = Json::array();
  std::string formulas;
  for (const ToyData& set : toy_data()) {
    data.push_back({{"name", set.name}, {"formula", set.formula}});
    formulas += fmt::format("{}{}: {}", formulas.empty() ? "" : ", ", set.name, set.formula);
  }
  for (const ToyPanel& panel : run.panels) {
    panels.push_back(panel_json(panel));
    add_proved(panel, panels.back());
  }
  result.numbers = {{"figure", name},
                    {"datasets", data},
                    {"training_points", kToyPoints},
                    {"training_range", {-kToyEnd, kToyEnd}},
                    {"parameterisation", "standard"},
                    {"initialisation", "weights N(0, 2 / fan_in), biases N(0, 0.01)"},
                    {"optimiser", "full-batch Adam, step size 0.001"},
                    {"epochs", options.epochs},
                    {"seeds", options.seeds},
                    {"first_seed", options.first_seed},
                    {"training_seconds", run.training_seconds},
                    {"proof_seconds", run.proof_seconds},
                    {"panels", panels}};
  const auto has = [&](const char* word) {
    return std::any_of(nets.begin(), nets.end(),
                       [&](const ToyNet& net) { return net.spec.find(word) != std::string::npos; });
  };
  const std::string norm =
      fmt::format("{}, trainable gain and bias, eps 1e-5",
                  has("residual") ? "where the spec has it" : "before the activation");
  if (has("rmsnorm"))
    result.numbers["rmsnorm"] = "before the activation, trainable gain, eps 2^-23";
  else if (has("batchnorm"))
    result.numbers["batchnorm"] =
        norm + "; trained, with mean and variance (by n - 1) of the training points";
  else
    result.numbers["layernorm"] = norm;
  result.table = fmt::format(
      "{}: {} points on [{}, {}] (data formulas and range are ours: {}); {} epochs of full-batch "
      "Adam, {} {}; mean +- 95% interval\n{}{} nets trained in {:.2f} s on {}\n",
      name, kToyPoints, -kToyEnd, kToyEnd, formulas, options.epochs, options.seeds,
      options.seeds == 1 ? "seed" : "seeds", panel_table(run),
      nets.size() * toy_data().size() * static_cast<std::size_t>(options.seeds),
      run.training_seconds, context.device);
  return result;
}

}  // namespace keel
