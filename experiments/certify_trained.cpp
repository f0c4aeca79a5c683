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
BoundProgress shown_on(StatusLine& status, const Standardiser& units, const std::string& name) {
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now();
  return [&, name, next](const std::vector<Interval>& outputs, std::int64_t boxes) mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(100);
    const Interval all = of_all(outputs);
    if (std::isfinite(all.low) && std::isfinite(all.high))
      status.show(fmt::format("bounding {}: f in {} by {} boxes; Ctrl-C ends it there ...", name,
                              interval_text(all, units), boxes));
  };
}

// Proves and searches, of one net after another and of what they say in the mean.
class Examination {
 public:
  Examination(const TrainedChoice& choice, const std::vector<TrainedNet>& nets,
              const TrainingRows& rows, const Standardiser& units, const Interrupt& interrupt,
              const Context& context)
      : choice_(choice),
        rows_(rows),
        units_(units),
        interrupt_(interrupt),
        status_(context.shows_progress()),
        inputs_(units.inputs(rows.examples, context.device)),
        starts_(search_starts(inputs_.to(Device::cpu()))),
        options_(
            search_options(choice.search, {.steps = kNetSteps, .seed = context.options.seed})) {
    options_.stop = interrupt.flag();
    if (!choice.search.ranges.empty()) {
      options_.ranges = ranges_of(choice, nets[0], units, context);
      options_.farthest = farthest_of(options_.ranges);
      options_.nearest = std::min(options_.nearest, 1e-3 * options_.farthest);
    }
    // A norm that comes first (--tail) makes the same of an input at all but the smallest
    // distances.
    if (normalises_rows(nets[0].net.spec().front().kind)) options_.radii = 5;
  }

  TrainedFindings one(const Net& net, const std::string& name) {
    const auto started = std::chrono::steady_clock::now();
    status_.show(fmt::format("bounding {} ...", name));
    TrainedFindings found;
    found.bound = bound_net(net, {.within = choice_.search.within.value_or(kInfinity),
                                  .ranges = options_.ranges,
                                  .pieces = choice_.pieces,
                                  .boxes = choice_.boxes,
                                  .all_boxes = choice_.boxes.has_value(),
                                  .progress = shown_on(status_, units_, name),
                                  .stop = interrupt_.flag()});
    found.bound_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    judge_and_search(found, net, found.bound.found_at, name);
    return found;
  }

  TrainedFindings mean(const Net& ensemble, const std::vector<TrainedFindings>& members) {
    TrainedFindings found;
    found.nets = ensemble.members();
    found.bound = mean_of_bounds(members);
    std::vector<std::vector<double>> points;
    for (const TrainedFindings& member : members) {
      found.bound_seconds += member.bound_seconds;
      points.insert(points.end(), member.bound.found_at.begin(), member.bound.found_at.end());
      points.push_back(member.attack.largest.x);
    }
    judge_and_search(found, ensemble, points, "the mean");
    return found;
  }

 private:
  // Of an ensemble, of what its members say in the mean.
  void judge_and_search(TrainedFindings& found, const Net& net,
                        const std::vector<std::vector<double>>& points, const std::string& name) {
    found.ranges = options_.ranges;
    if (rows_.given) {
      found.r2 = r2_of(net, inputs_, rows_.examples.y);
      if (rows_.held_out.rows > 0)
        found.held_out_r2 =
            r2_of(net, units_.inputs(rows_.held_out, inputs_.device()), rows_.held_out.y);
      found.farthest_row = longest_row(inputs_);
    }
    status_.show(fmt::format("searching for the largest |f(x)| of {} ...", name));
    options_.points = points;
    const OutputSize size = size_of_outputs(net);
    found.attack = attack(choice_.search.wanted(units_.y_scale()),
                          largest_output(net, size, found.bound_or_infinity()), starts_, options_,
                          found.bound.bounded, gradient_of_largest(net, size));
    if (!found.bound.bounded) return;
    const OutputSize share = share_of_intervals(found.bound);
    found.share = search_largest(largest_output(net, share, 1), net.input_width(), starts_,
                                 options_, gradient_of_largest(net, share));
  }

  double r2_of(const Net& net, const Tensor& inputs, const std::vector<double>& y) const {
    return r_squared(units_.y_in_own_units(mean_of_members(net.predict(inputs), net.members())), y);
  }

  const TrainedChoice& choice_;
  const TrainingRows& rows_;
  const Standardiser& units_;
  const Interrupt& interrupt_;
  StatusLine status_;
  Tensor inputs_, starts_;
  SearchOptions options_;
};

// Throws where what was found denies what was proved.
void check_findings(const TrainedFindings& found, const Standardiser& units) {
  check_kept(found.attack.largest.value, found.bound_or_infinity(), units);
  check(
      !(found.share.value > kKept), "certify",
      "found an output {} halves of its interval from the middle, wanted 1 at most: keel is wrong",
      found.share.value);
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
  const std::vector<TrainedNet> nets =
      trained_nets(spec, file, choice.weights, choice.modules,
                   choice.data.empty() ? "" : choice.standardise, context);
  if (choice.tail) context.note(note_of_tail(file, choice));
  const Net& net = nets[0].net;
  TrainingRows rows(choice, nets[0], context);
  const Standardiser units = units_of(rows, nets[0], choice);
  const Interrupt interrupt;
  std::vector<TrainedFindings> members;
  const TrainedFindings found = [&] {
    Examination examination(choice, nets, rows, units, interrupt, context);
    if (nets.size() == 1) return examination.one(net, "the net");
    for (std::size_t s = 0; s < nets.size(); ++s)
      members.push_back(examination.one(nets[s].net, fmt::format("net {} of {}", s, nets.size())));
    return examination.mean(ensemble_of(nets), members);
  }();

  if (found.r2 < 0)
    context.note(nets[0].columns.empty()
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
  if (!nets[0].zero_biases.empty()) numbers["zero_biases"] = nets[0].zero_biases;
  if (!members.empty()) numbers["members"] = nets.size();
  if (choice.member >= 0) numbers["member"] = choice.member;
  if (rows.given)
    numbers.update({{"data", choice.data},
                    {"target", choice.target},
                    {"train_rows", rows.examples.rows},
                    {"standardise", choice.standardise}});
  if (!choice.ignore.empty()) numbers["ignore"] = choice.ignore;
  numbers.update(findings_json(found, choice, net.spec(), units));
  for (const TrainedFindings& member : members)
    numbers["by_member"].push_back(findings_json(member, choice, net.spec(), units));
  if (raised(interrupt.flag())) numbers["stopped"] = true;
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << (members.empty() ? "" : members_text(members, found, units) + "\nthe mean:\n")
                << findings_text(found, choice, net.spec(), units);
  for (const TrainedFindings& member : members) check_findings(member, units);
  check_findings(found, units);
  return ended(interrupt, context);
}

}  // namespace keel
