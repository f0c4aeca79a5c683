// keel certify: a bound on every prediction of a kernel regression, or of a trained net, and a
// search that tries to break it.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>
#include <utility>

#include "../nn/transformer_weights.h"
#include "certify_report.h"
#include "certify_tail.h"
#include "certify_transformer.h"
#include "net_inputs.h"
#include "output.h"
#include "progress_bar.h"
#include "regression_task.h"
#include "standardiser.h"
#include "statistics.h"
#include "trained_net.h"

namespace keel {
namespace {

struct CertifyChoice {
  RegressionChoice regression;
  SearchChoice search;
  std::int64_t pieces = TrainedChoice{}.pieces, member = TrainedChoice{}.member;
  std::optional<std::int64_t> boxes{};
  bool tail = false;
};

constexpr std::int64_t kEstimateRows =
    4096;  // beyond, the smallest eigenvalue costs too many solves

bool grows(const Spec& spec, std::int64_t features) {
  bool within = false;  // a residual, which x passes by
  for (const LayerSpec& layer : spec) {
    if (joins(layer.kind)) within = layer.kind == LayerKind::residual;
    if (!within && bounds_rows(layer.kind)) return bounds_units(layer.kind) && features > 1;
  }
  return true;
}

KernelSupremum supremum_of(const RegressionTask& task, const Spec& spec, const Tensor& some,
                           const SearchOptions& options, double within) {
  if (const auto* infinite = dynamic_cast<const InfiniteKernel*>(task.kernel().get()))
    return {infinite->supremum(within), {}};
  KernelSupremum result;
  result.proved.at = std::numeric_limits<double>::infinity();
  const std::int64_t features = task.training().features;
  if (grows(spec, features))
    result.proved.growth = 2;
  else
    result.searched = search_largest(kernel_diagonal(*task.kernel()), features, some, options);
  return result;
}

RegressionFindings examine(const CertifyChoice& choice, const RegressionTask& task,
                           const Regression& regression, const Interrupt& interrupt,
                           const Context& context) {
  SearchOptions options =
      search_options(choice.search, {.steps = kKernelSteps, .seed = context.options.seed});
  options.stop = interrupt.flag();
  const Tensor inputs = task.inputs(task.training());
  const Tensor some = search_starts(inputs.to(Device::cpu()));
  StatusLine status(context.shows_progress());
  RegressionFindings found;
  status.show("largest Theta(x, x) ...");
  found.supremum = supremum_of(task, parse_spec(choice.regression.kernel.net), some, options,
                               choice.search.within.value_or(kInfinity));
  found.estimated = task.training().rows <= kEstimateRows;
  try {
    found.certificate = certify(regression, found.supremum.value(), 0, found.estimated);
  } catch (const Error&) {  // nothing but the estimate solves for more than y
    if (!std::exchange(found.estimated, false)) throw;
    found.certificate = certify(regression, found.supremum.value(), 0, false);
  }
  if (found.supremum.searched)
    found.if_supremum = found.certificate.at(found.supremum.searched->value);
  status.show("searching for the largest |f(x)| ...");
  found.attack =
      attack(choice.search.wanted(task.standardiser().y_scale()), prediction_size(regression), some,
             options, found.certificate.bounded() || found.supremum.searched);
  found.r2 =
      r_squared(task.standardiser().y_in_own_units(regression.predict(inputs).to_vector<double>()),
                task.training().y);
  return found;
}

int run_certify(CertifyChoice choice, Context& context) {
  const OutputFolder folder(context.options.out.empty() ? "out/certify" : context.options.out);
  check_apart({folder.path("summary.json").string()},
              {choice.regression.data, choice.regression.kernel.weights});
  const RegressionTask task(choice.regression, context);
  const Regression regression = [&] {
    Watch watch(context);
    return task.solve(watch);
  }();
  const Interrupt interrupt;
  const RegressionFindings found = examine(choice, task, regression, interrupt, context);

  Json numbers = regression_json(choice.regression, task, regression, context);
  numbers.update(findings_json(found, task.standardiser(), choice.search));
  if (raised(interrupt.flag())) numbers["stopped"] = true;
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << findings_text(found, task.standardiser(), choice.search)
                << solver_line(regression);
  check_kept(found.attack.largest.value, found.certificate.bound, task.standardiser());
  return ended(interrupt, context);
}

void require(const CLI::App& app, const char* name) {
  if (app.count(name) == 0) throw UsageError("usage", fmt::format("{} is required", name));
}

// A net of a SPEC, the end of a larger one, or a transformer.
int run_weights(const CLI::App& app, TrainedChoice choice, Context& context) {
  check_trained(app);
  SafeTensors file;
  try {
    file = read_choice(choice);
    if (is_transformer(file)) {
      check_transformer(app);
      return run_transformer(
          file, {choice.weights, choice.data, choice.target, choice.member, choice.search},
          context);
    }
    choice.net = net_of(choice.net, file, choice.weights);
    if (choice.member >= 0) file = member_of(file, choice.member, choice.weights);
    // Of another library's net it is not known that its inputs were: they are taken as they are.
    choice.standardise = standardise_by(choice.standardise, file, "none");
    return run_trained(file, choice, context);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const std::string hint = tail_hint(choice, context), tag = error.tag() + ": ";
    if (hint.empty()) throw;
    throw Error(error.tag(), std::string(error.what()).substr(tag.size()) + hint);
  }
}

}  // namespace

Run declare_certify(CLI::App& app) {
  const auto choice = std::make_shared<CertifyChoice>();
  RegressionChoice& regression = choice->regression;
  regression.kernel.may_be_trained = true;
  declare_regression(app, regression);
  for (const char* name : {"--data", "--target"}) app.get_option(name)->required(false);
  declare_search(app, choice->search);
  app.add_option("--pieces", choice->pieces,
                 "with two or more activations behind the last norm, or one behind the first tanh "
                 "or sigmoid: what is cut to tighten the bound, 0 for none")
      ->check(check_whole(0, 100000))
      ->capture_default_str();
  app.add_option(
         "--boxes", choice->boxes,
         "how many boxes the inputs are cut in to tighten the bound, 0 for none (default: up to "
         "what takes some seconds, where they help); of few features they leave nothing open")
      ->check(check_whole(0, 1000000000));
  app.add_option("--member", choice->member,
                 "which net of an ensemble's --weights, from 0 (default: each, and what they say "
                 "in the mean)")
      ->check(check_whole(0, 1000000));
  app.add_flag("--tail", choice->tail,
               "--net and --modules are what stands at the end of a larger net, of any kind, whose "
               "other tensors are not read");
  const auto group = [&](const char* title, std::initializer_list<const char*> names) {
    for (const char* name : names) app.get_option(name)->group(title);
  };
  group("A kernel regression (--mode infinite, empirical)",
        {"--param", "--dtype", "--sigma-w2", "--first-sigma-w2", "--sigma-b2", "--seeds", "--ridge",
         "--ridge-relative"});
  group("A net as it is (--mode trained)",
        {"--modules", "--member", "--tail", "--pieces", "--boxes"});
  group("Where to prove, and the search",
        {"--within", "--ranges", "--widen", "--farthest", "--directions", "--steps", "--exceed"});
  app.footer(
      "The certificate bounds the mean prediction of infinitely wide nets at every input, however "
      "far from the data; without a Layer Norm or RMSNorm that no residual passes by, or behind a "
      "tanh or sigmoid, there is none. Of --mode empirical nothing is proved.\n--mode trained "
      "bounds the very net of --weights "
      "(--net SPEC --weights W.safetensors), with no data. A file of `keel train` says its SPEC, "
      "and the units that it was trained in; --data and --target of its training give R^2, too. Of "
      "a transformer's file (keel forecast --save-weights) no SPEC is wanted: it bounds every "
      "prediction of any sequence, and --data and --target are a series to judge it by.\n"
      "Bounds are about `centre`: the mean of y for --standardise xy, what a transformer's file "
      "says, 0 otherwise. Writes summary.json into --out (default out/certify).");
  return [choice, &app](Context& context) {
    const RegressionChoice& of = choice->regression;
    check_region(app);
    if (of.kernel.trained())
      return run_weights(app,
                         {of.kernel.net, of.kernel.weights, modules_of(of.kernel.modules),
                          choice->tail, of.data, of.target, of.standardise, of.ignore,
                          choice->search, choice->pieces, choice->member, choice->boxes},
                         context);
    if (app.count("--weights") > 0 && app.count("--mode") == 0)
      throw UsageError("usage",
                       "got --weights, wanted --mode trained, of that net, or --mode empirical, of "
                       "a regression with its kernel");
    for (const char* name : {"--data", "--target"}) require(app, name);
    for (const char* name : {"--pieces", "--boxes", "--ranges", "--tail", "--member"})
      if (app.count(name) > 0)
        throw UsageError("usage", fmt::format("{} is for --mode trained", name));
    if (choice->search.within && of.kernel.mode == "empirical")
      throw UsageError("usage",
                       "--within is for --mode infinite and trained: of --mode empirical nothing "
                       "is proved (--farthest is where its search ends)");
    return run_certify(*choice, context);
  };
}

}  // namespace keel
