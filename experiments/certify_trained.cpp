#include "certify_trained.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ostream>

#include "certify_rows.h"
#include "certify_tail.h"
#include "certify_trained_report.h"
#include "largest_output.h"
#include "output.h"
#include "progress_bar.h"
#include "standardiser.h"
#include "statistics.h"
#include "trained_net.h"

namespace keel {
namespace {

// What boxes have proved by now, ten times a second at most.
BoundProgress shown_on(StatusLine& status, const Standardiser& units) {
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now();
  return [&, next](const std::vector<Interval>& outputs, std::int64_t boxes) mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(100);
    const Interval all = of_all(outputs);
    if (std::isfinite(all.low) && std::isfinite(all.high))
      status.show(fmt::format("bounding the net: f in {} by {} boxes; Ctrl-C ends it there ...",
                              interval_text(all, units), boxes));
  };
}

TrainedFindings examine(const TrainedChoice& choice, const TrainedNet& trained,
                        const TrainingRows& rows, const Standardiser& units,
                        const Interrupt& interrupt, const Context& context) {
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
                                .all_boxes = choice.boxes.has_value(),
                                .progress = shown_on(status, units),
                                .stop = interrupt.flag()});
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
  options.stop = interrupt.flag();
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
  const Interrupt interrupt;
  const TrainedFindings found = examine(choice, trained, rows, units, interrupt, context);

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
  if (raised(interrupt.flag())) numbers["stopped"] = true;
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
  return ended(interrupt, context);
}

}  // namespace keel
