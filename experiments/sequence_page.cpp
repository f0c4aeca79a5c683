#include "sequence_page.h"

#include <algorithm>

#include "progress_bar.h"
#include "text_table.h"

namespace keel {
namespace {

// Of such columns, and then one a seed.
Csv with_seeds(std::vector<std::string> header, const SequenceOptions& options) {
  for (std::int64_t seed = 0; seed < options.seeds; ++seed)
    header.push_back(fmt::format("seed_{}", options.first_seed + static_cast<std::uint64_t>(seed)));
  return Csv(header);
}

std::string far_csv(const SequenceRun& run, const SequenceOptions& options) {
  Csv csv = with_seeds({"net", "slope"}, options);
  for (const SequenceNet& net : run.nets)
    for (std::size_t k = 0; k < far_slopes().size(); ++k) {
      csv.add(net.net).add(far_slopes()[k]);
      for (const auto& of_seed : net.far) csv.add(of_seed[k]);
      csv.end_row();
    }
  return csv.text();
}

std::string curves_csv(const SequenceRun& run, const SequenceOptions& options) {
  Csv csv = with_seeds(
      {"sequence", "net", "continuation", "i", "true", "mean", "ci_low", "ci_high"}, options);
  for (const SequencePanel& panel : run.panels)
    for (std::size_t k = 0; k < panel.band.size(); ++k) {
      const std::int64_t i = kBegin + 1 + static_cast<std::int64_t>(k);
      const Estimate& at = panel.band[k];
      csv.add(panel.sequence.name).add(panel.net).add(name_of(panel.how)).add(i);
      csv.add(panel.sequence.at(i)).add(at.mean);
      csv.add(at.mean - at.half_width).add(at.mean + at.half_width);
      for (const auto& curve : panel.curves) csv.add(curve[k]);
      csv.end_row();
    }
  return csv.text();
}

Json net_json(const SequenceNet& net) {
  const Estimate mse = mean_with_interval(net.mse), exponent = mean_with_interval(net.exponents);
  const Estimate far = mean_with_interval(net.far_size);
  return {{"net", net.net},
          {"train_mse", mean_with_interval(net.loss).mean},
          {"train_mse_by_seed", net.loss},
          {"mse", mse.mean},
          {"mse_ci", mse.half_width},
          {"far_field_exponent", exponent.mean},
          {"far_field_exponent_ci", exponent.half_width},
          {"far_field_exponent_by_seed", net.exponents},
          {"far_field_size", far.mean},
          {"far_field_size_ci", far.half_width},
          {"largest_found_by_seed", net.largest},
          {"bound_by_seed", net.bound.empty() ? Json() : Json(net.bound)}};
}

Json panel_json(const SequencePanel& panel) {
  const Estimate& end = panel.band.back();
  return {{"sequence", panel.sequence.name},
          {"net", panel.net},
          {"continuation", name_of(panel.how)},
          {"true_end", panel.sequence.at(kEnd)},
          {"end", end.mean},
          {"end_ci", end.half_width},
          {"largest", panel.largest}};
}

std::string tables(const SequenceRun& run) {
  std::vector<std::vector<std::string>> nets = {{"net", "train MSE", "other sequences' MSE",
                                                 "mean |f|, slope +-1e4", "growth exponent",
                                                 "largest |f|", "proved |f| <="}};
  for (const SequenceNet& net : run.nets) {
    const Estimate mse = mean_with_interval(net.mse);
    nets.push_back(
        {net.net, brief(mean_with_interval(net.loss).mean, 2), brief(mse.mean, mse.half_width, 2),
         brief(mean_with_interval(net.far_size).mean),
         fmt::format("{:.3f}", mean_with_interval(net.exponents).mean),
         brief(*std::max_element(net.largest.begin(), net.largest.end())),
         net.bound.empty()
             ? "-"
             : brief_outward(*std::max_element(net.bound.begin(), net.bound.end()), 3, 1)});
  }
  std::vector<std::vector<std::string>> panels = {
      {"sequence", "net", "continued by", "true x_100", "x_100", "largest |x_i|, any seed"}};
  for (const SequencePanel& panel : run.panels) {
    const Estimate& end = panel.band.back();
    panels.push_back({panel.sequence.name, panel.net, name_of(panel.how),
                      brief(panel.sequence.at(kEnd)), brief(end.mean, end.half_width, 3),
                      brief(panel.largest)});
  }
  return text_table(nets, 1) + text_table(panels, 3);
}

}  // namespace

Reproduced reproduce_sequences(const char* figure, const std::vector<SequenceKind>& kinds,
                               const std::string& norms, const Context& context,
                               const ReproduceOptions& chosen, const OutputFolder& folder) {
  SequenceOptions options{.figure = figure, .kinds = kinds};
  options.seeds = chosen.seeds.value_or(options.seeds);
  options.steps = chosen.epochs.value_or(options.steps);
  options.first_seed = context.options.seed;
  options.device = context.device;
  SequenceRun run;
  {
    ProgressBar bar(figure, sequence_steps(options), context.shows_progress());
    options.progress = [&](std::int64_t steps) { bar.update(steps); };
    run = run_sequence_figure(options);
  }
  folder.write("curves.csv", curves_csv(run, options));
  folder.write("far.csv", far_csv(run, options));

  Reproduced result;
  Json sequences = Json::array(), nets = Json::array(), panels = Json::array();
  for (const LineOfValues& line : shown_sequences())
    sequences.push_back({{"name", line.name}, {"a", line.a}, {"b", line.b}});
  for (const SequenceNet& net : run.nets) nets.push_back(net_json(net));
  for (const SequencePanel& panel : run.panels) panels.push_back(panel_json(panel));
  result.numbers = {
      {"figure", figure},
      {"sequences", sequences},
      {"trained_on", fmt::format("a + b i, i = 1 to {}, a and b ~ N(0, 1), divided by their root "
                                 "mean square",
                                 kTrainedTo)},
      {"net",
       "decoder-only transformer: 2 blocks, 4 heads, width 64, ReLU layers of 256, trained "
       "places; " +
           norms},
      {"initialisation",
       "weights N(0, 2 / fan_in) behind a ReLU and N(0, 1 / fan_in) elsewhere, biases N(0, 0.01), "
       "places N(0, 1)"},
      {"optimiser", "Adam, step size 0.001"},
      {"trained_to", kTrainedTo},
      {"epochs", options.steps},
      {"sequences_an_epoch", options.batch},
      {"shown", {kBegin + 1, kEnd}},
      {"seeds", options.seeds},
      {"first_seed", options.first_seed},
      {"training_seconds", run.training_seconds},
      {"nets", nets},
      {"panels", panels}};
  for (const SequenceNet& net : run.nets)
    for (std::size_t s = 0; s < net.bound.size(); ++s)
      if (!(net.largest[s] <= net.bound[s]))
        result.problem =
            fmt::format("{}: seed {} of {} predicted {}, wanted at most its bound {}", figure,
                        options.first_seed + s, net.net, net.largest[s], net.bound[s]);
  result.table = fmt::format(
      "{}: transformers trained on a + b i, i = 1 to {}, for {} steps of {} sequences, {} {}; "
      "mean +- 95% interval\n{}{} transformers trained in {:.2f} s on {}\n",
      figure, kTrainedTo, options.steps, options.batch, options.seeds,
      options.seeds == 1 ? "seed" : "seeds", tables(run), std::ssize(kinds) * options.seeds,
      run.training_seconds, context.device);
  return result;
}

}  // namespace keel
