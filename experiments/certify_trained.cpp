#include "certify_trained.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <ostream>

#include "../ntk/net_bound.h"
#include "../ntk/tail_sum.h"
#include "certify_rows.h"
#include "certify_tail.h"
#include "largest_output.h"
#include "output.h"
#include "progress_bar.h"
#include "statistics.h"
#include "text_table.h"
#include "trained_net.h"

namespace keel {
namespace {

struct TrainedFindings {
  double r2 = std::numeric_limits<double>::quiet_NaN();
  double farthest_row = std::numeric_limits<double>::quiet_NaN();  // |x|, as the search has it
  std::vector<Interval> ranges{};                                  // of x, as the search has it
  NetBound bound;
  double bound_seconds = 0;
  Attack attack;
  Found share;  // of an interval, by a search of its own: |f| is largest at one end of one
  double bound_or_infinity() const {
    return bound.bounded ? bound.largest() : std::numeric_limits<double>::infinity();
  }
};

TrainedFindings examine(const TrainedChoice& choice, const TrainedNet& trained,
                        const TrainingRows& rows, const Standardiser& units,
                        const Context& context) {
  const Net& net = trained.net;
  StatusLine status(context.shows_progress());
  TrainedFindings found;
  status.show("bounding the net ...");
  const auto started = std::chrono::steady_clock::now();
  if (!choice.search.ranges.empty()) found.ranges = ranges_of(choice, trained, units);
  found.bound = bound_net(net, {.within = choice.search.within.value_or(kInfinity),
                                .ranges = found.ranges,
                                .pieces = choice.pieces,
                                .boxes = choice.boxes,
                                .all_boxes = choice.boxes.has_value()});
  found.bound_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Tensor inputs = units.inputs(rows.examples, context.device);
  if (rows.given) {
    found.r2 =
        r_squared(units.y_in_own_units(net.predict(inputs).to_vector<double>()), rows.examples.y);
    found.farthest_row = longest_row(inputs);
  }
  status.show("searching for the largest |f(x)| ...");
  const Tensor starts = search_starts(inputs.to(Device::cpu()));
  SearchOptions options =
      search_options(choice.search, {.steps = kNetSteps, .seed = context.options.seed});
  options.ranges = found.ranges;
  if (!found.ranges.empty()) {
    options.farthest = farthest_of(found.ranges);
    options.nearest = std::min(options.nearest, 1e-3 * options.farthest);
  }
  options.points = found.bound.found_at;
  // A norm that comes first (--tail) makes the same of an input at all but the smallest distances.
  if (normalises_rows(net.spec().front().kind)) options.radii = 5;
  const OutputSize size = size_of_outputs(net);
  found.attack = attack(choice.search.wanted(units.y_scale()),
                        largest_output(net, size, found.bound_or_infinity()), starts, options,
                        found.bound.bounded, gradient_of_largest(net, size));
  if (!found.bound.bounded) return found;
  const OutputSize share = share_of_intervals(found.bound);
  found.share = search_largest(largest_output(net, share, 1), net.input_width(), starts, options,
                               gradient_of_largest(net, share));
  return found;
}

Json interval_json(const Interval& interval, const Standardiser& units) {
  return {units.y_in_own_units(interval.low), units.y_in_own_units(interval.high)};
}

// Rounded outward, to as many digits as tell its ends apart.
std::string interval_text(const Interval& interval, const Standardiser& units) {
  const double low = units.y_in_own_units(interval.low), high = units.y_in_own_units(interval.high);
  const double size = std::max(std::abs(low), std::abs(high)), width = high - low;
  const int digits =
      width > 0 ? static_cast<int>(std::clamp(4 + std::log10(size / width), 5.0, 15.0)) : 15;
  return fmt::format("[{}, {}]", brief_outward(low, digits, -1), brief_outward(high, digits, 1));
}

// The hull of all outputs' intervals.
Interval of_all(const std::vector<Interval>& outputs) {
  Interval all = outputs[0];
  for (const Interval& output : outputs)
    all = {std::min(all.low, output.low), std::max(all.high, output.high)};
  return all;
}

std::string no_bound(const Spec& spec) {
  return fmt::format("no layernorm, rmsnorm, tanh or sigmoid{}", outside_residuals(spec));
}

std::string bounded_by(const NetBound& bound) {
  return bound.word == 0 ? "within" : name_of(bound.kind);
}

// Where what the word gives stays, of whatever input.
std::string place_of(const NetBound& bound) {
  if (bound.kind == LayerKind::tanh) return "within -1 and 1";
  if (bound.kind == LayerKind::sigmoid) return "within 0 and 1";
  return fmt::format("in a ball of {} dimensions", bound.rank);
}

std::string proof_of(const NetBound& bound, const Spec& spec) {
  if (!bound.bounded) return fmt::format("none: {}", no_bound(spec));
  if (bound.closed)
    return fmt::format("x in {} boxes, to {:g}% of what f reaches", bound.boxes, 100 * kNearFound);
  const std::string boxes = bound.boxes > 0 ? fmt::format(", {} boxes", bound.boxes) : "";
  if (bound.activations == 0 && !bound.cone && !bound.image) return "linear" + boxes;
  return fmt::format("dual, {} layer{}{}{}{}{}", bound.activations,
                     bound.activations == 1 ? "" : "s", bound.cone ? ", cone" : "",
                     bound.image ? ", image" : "",
                     bound.sets > 1 ? fmt::format(", {} sets", bound.sets) : "", boxes);
}

Json findings_json(const TrainedFindings& found, const TrainedChoice& choice, const Spec& spec,
                   const Standardiser& units) {
  const NetBound& bound = found.bound;
  Json json = {{"centre", units.y_mean()},
               {"bound", found.bound_or_infinity() * units.y_scale()},
               {"bounded", bound.bounded},
               {"interval", nullptr},
               {"proof", proof_of(bound, spec)}};
  if (bound.bounded) {
    json["interval"] = interval_json(of_all(bound.outputs), units);
    json["intervals"] = Json::array();
    for (const Interval& output : bound.outputs)
      json["intervals"].push_back(interval_json(output, units));
    json["bounded_by"] = bound.word == 0 && !found.ranges.empty() ? "ranges" : bounded_by(bound);
    json["bounded_by_word"] = bound.word;
    json["bounded_by_width"] = bound.width;
    json["bounded_by_dimension"] = bound.rank;
    json["sets"] = bound.sets;
    json["boxes"] = bound.boxes;
    json["closed"] = bound.closed;
    json["found_over_bound"] = found.attack.largest.value / bound.largest();
    json["found_of_interval"] = found.share.value;
  }
  if (choice.search.within) json["within"] = *choice.search.within;
  if (!found.ranges.empty()) json["ranges"] = ranges_json(choice, found.ranges, units);
  json["bound_seconds"] = found.bound_seconds;
  json["data_fit_r2"] = found.r2;
  if (std::isfinite(found.farthest_row)) json["farthest_row"] = found.farthest_row;
  json.update(
      attack_json(found.attack, units,
                  found.ranges.empty() ? choice.search.region() : farthest_of(found.ranges)));
  return json;
}

std::string findings_text(const TrainedFindings& found, const TrainedChoice& choice,
                          const Spec& spec, const Standardiser& units) {
  constexpr std::size_t kShown = 8;  // outputs
  const NetBound& bound = found.bound;
  const Found& largest = found.attack.largest;
  std::vector<std::vector<std::string>> table;
  const std::string proved = "proved" + within_text(choice.search, units) + ": ";
  if (std::isfinite(found.r2)) {
    table.push_back({"R^2 on the rows of --data", brief(found.r2, 5)});
    table.push_back(
        {units.moves_x() ? "  whose |x|, standardised, is at most" : "  whose |x| is at most",
         brief_outward(found.farthest_row, 3, 1)});
  }
  for (std::size_t i = 0; i < std::min(bound.outputs.size(), kShown); ++i)
    table.push_back({bound.outputs.size() == 1
                         ? proved + "f(x) is never outside"
                         : proved + fmt::format("output {} is never outside", i),
                     interval_text(bound.outputs[i], units)});
  if (bound.bounded)
    table.push_back({proved + about_text(units) + " is at most",
                     brief_outward(bound.largest() * units.y_scale(), 5, 1)});
  else
    table.push_back({"bound of " + about_text(units), proof_of(bound, spec)});
  table.push_back({found.ranges.empty()
                       ? fmt::format("largest found for |x| <= {:g}{}", choice.search.region(),
                                     units.moves_x() ? ", standardised" : "")
                       : "largest found in these ranges",
                   brief(largest.value * units.y_scale(), 5)});
  table.push_back({"  at |x|", brief(largest.distance(), 5)});
  if (bound.bounded && bound.largest() > 0)
    table.push_back({"  of the bound", brief(largest.value / bound.largest(), 3)});
  if (bound.bounded)
    table.push_back({"  of half the interval, from its middle", brief(found.share.value, 3)});
  std::string text = text_table(table, 1);
  if (bound.outputs.size() > kShown)
    text += fmt::format("{} outputs in all: summary.json has them\n", bound.outputs.size());
  if (bound.bounded && bound.word == 0)
    text += fmt::format("from x itself on, of {} feature{}; {}\n", bound.width,
                        bound.width == 1 ? "" : "s", proof_of(bound, spec));
  else if (bound.bounded)
    text += fmt::format("by the {} at word {}: its {} units stay {}; {}\n", name_of(bound.kind),
                        bound.word, bound.width, place_of(bound), proof_of(bound, spec));
  else if (!found.attack.beyond)
    text += fmt::format("{}: nothing is proved, but for a region (--within, --ranges)\n",
                        no_bound(spec));
  if (!found.ranges.empty())
    text += fmt::format(
        "ranges: those of the columns of {}{}\n", choice.search.ranges,
        choice.search.widen == 1 ? "" : fmt::format(", {:g} times as wide", choice.search.widen));
  if (choice.tail)
    text += fmt::format(
        "x is what enters '{}', whatever makes it: the whole net may not come to what was found\n",
        choice.modules.front());
  return text + exceed_line(found.attack, units);
}

}  // namespace

void check_trained(const CLI::App& app) {
  for (const char* name : {"--param", "--dtype", "--sigma-w2", "--first-sigma-w2", "--sigma-b2",
                           "--seeds", "--ridge", "--ridge-relative"})
    if (app.count(name) > 0)
      throw UsageError("usage", fmt::format("{} is for --mode infinite and empirical: a trained "
                                            "net has its weights and no kernel",
                                            name));
  if (app.count("--weights") == 0)
    throw UsageError("usage", "--mode trained needs --weights W.safetensors");
  const bool data = app.count("--data") > 0, tail = app.count("--tail") > 0;
  if (tail && app.count("--modules") == 0)
    throw UsageError("usage", "--tail needs --modules: those of --weights that are the tail");
  if (tail && data)
    throw UsageError("usage",
                     "got --tail and --data, wanted one of them: a table's rows enter the whole "
                     "net, and of that only the tail is looked at");
  if (data && app.count("--target") == 0)
    throw UsageError("usage", "--data needs --target: the column that the net predicts");
  for (const char* name : {"--target", "--ignore", "--standardise"})
    if (!data && app.count(name) > 0 &&
        !(app.count("--ranges") > 0 && std::string(name) == "--ignore"))
      throw UsageError("usage", fmt::format("{} is for a table: --mode trained without --data "
                                            "works in the net's own units",
                                            name));
}

int run_trained(const SafeTensors& file, const TrainedChoice& choice, Context& context) {
  const OutputFolder folder(context.options.out.empty() ? "out/certify" : context.options.out);
  check_apart({folder.path("summary.json").string()},
              {choice.data, choice.weights, choice.search.ranges});
  const Spec spec = choice.tail ? parse_tail(choice.net) : parse_spec(choice.net);
  const TrainedNet trained = trained_net(spec, file, choice.weights, choice.modules,
                                         choice.data.empty() ? "" : choice.standardise, context);
  if (const std::string note = note_of_tail(file, choice); choice.tail && !note.empty())
    context.note(note);
  const Net& net = trained.net;
  TrainingRows rows(choice, net);
  const Standardiser units = units_of(rows, trained, choice);
  const TrainedFindings found = examine(choice, trained, rows, units, context);

  if (found.r2 < 0)
    context.note(trained.columns.empty()
                     ? "note: R^2 is below 0: if the net was trained on these rows, --target, "
                       "--standardise or the order of columns differ"
                     : "note: R^2 is below 0: the net fits these rows worse than their mean does");
  Json numbers = {{"net", spec_text(spec)},
                  {"mode", "trained"},
                  {"weights", choice.weights},
                  {"features", net.input_width()},
                  {"outputs", net.output_width()}};
  if (!choice.modules.empty()) numbers["modules"] = choice.modules;
  if (choice.tail) numbers["tail"] = true;
  if (!trained.zero_biases.empty()) numbers["zero_biases"] = trained.zero_biases;
  if (choice.member >= 0) numbers["member"] = choice.member;
  if (rows.given)
    numbers.update({{"data", choice.data},
                    {"target", choice.target},
                    {"train_rows", rows.examples.rows},
                    {"standardise", choice.standardise}});
  if (!choice.ignore.empty()) numbers["ignore"] = choice.ignore;
  numbers.update(findings_json(found, choice, net.spec(), units));
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << findings_text(found, choice, net.spec(), units);
  check_kept(found.attack.largest.value, found.bound_or_infinity(), units);
  check(
      !(found.share.value > kKept), "certify",
      "found an output {} halves of its interval from the middle, wanted 1 at most: keel is wrong",
      found.share.value);
  return 0;
}

}  // namespace keel
