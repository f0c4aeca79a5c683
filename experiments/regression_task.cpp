#include "regression_task.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "feature_names.h"
#include "net_inputs.h"
#include "text_table.h"

namespace keel {
namespace {

RegressionOptions options_of(const RegressionChoice& choice) {
  RegressionOptions options;
  options.ridge = {choice.ridge, choice.ridge_relative};
  options.factor = choice.kernel.element();
  return options;
}

// What --weights holds, if it was given, and what it says that the options do not.
std::optional<SafeTensors> completed(RegressionChoice& choice) {
  std::optional<SafeTensors> weights = completed(choice.kernel);
  const SafeTensors none;
  const std::string own = standardise_of(weights ? *weights : none);
  choice.standardise = standardise_by(choice.standardise, weights ? *weights : none, "x");
  // Units that the net was not trained in would make another function of it.
  check(own.empty() || (own == "none") == (choice.standardise == "none"), "standardise",
        "{} is of a net that keel trained with --standardise {}, got {}", choice.kernel.weights,
        shown(own), choice.standardise);
  return weights;
}

// The names that the weights have of their net's features.
NamedFeatures named_by(const std::optional<SafeTensors>& weights, const RegressionChoice& choice) {
  if (!weights) return {{}, choice.target};
  return {{names_of_features(*weights, choice.kernel.weights), choice.kernel.weights},
          choice.target};
}

std::string plan_line(const MemoryPlan& plan, std::int64_t rows) {
  std::string line =
      fmt::format("memory: {} for the factor of {} x {}", human_bytes(plan.matrix), rows, rows);
  if (plan.kept > 0) line += fmt::format(", {} for the kernel in double", human_bytes(plan.kept));
  return line + fmt::format(", {} in all", human_bytes(plan.total()));
}

}  // namespace

void declare_regression(CLI::App& app, RegressionChoice& choice) {
  choice.kernel.dtype = "f32";
  declare_kernel(app, choice.kernel,
                 "of the factor, refined in double, and of empirical nets: f32 or f64");
  app.add_option("--data", choice.data, "CSV or whitespace table, with or without a header")
      ->required();
  app.add_option("--target", choice.target,
                 "column to predict: its name, or its number from 0, -1 the last")
      ->required();
  declare_ignore(app, choice.ignore);
  app.add_option(
         "--standardise", choice.standardise,
         "none, x or xy: by mean and population deviation of the training rows (default: x, "
         "or as the net of --weights was trained; its x keeps the units of that; of --mode "
         "trained, where these do not say, none)")
      ->check(one_of({"none", "x", "xy"}));
  auto* ridge = app.add_option("--ridge", choice.ridge, "added to the kernel's diagonal")
                    ->check(check_not_negative)
                    ->capture_default_str();
  app.add_option("--ridge-relative", choice.ridge_relative,
                 "added to the diagonal after multiplying by the mean diagonal")
      ->check(check_not_negative)
      ->excludes(ridge);
}

RegressionTask::RegressionTask(RegressionChoice& choice, const Context& context)
    : RegressionTask(choice, completed(choice), context) {}

RegressionTask::RegressionTask(const RegressionChoice& choice,
                               const std::optional<SafeTensors>& weights, const Context& context)
    : choice_(choice),
      context_(context),
      named_(named_by(weights, choice)),
      table_(read_table(choice.data, 1, named_.ignored(ignored_columns(choice.ignore)))),
      split_(split_of(as_the_net_takes_them(training_examples(table_, choice.target)),
                      choice.hold_out, context.options.seed, choice.data)),
      standardiser_(parse_standardise(choice.standardise), split_.training) {
  const Spec spec = parse_spec(choice.kernel.net);
  check(spec.back().width == 1, "net", "got a net of {} outputs, wanted dense(1) at its end",
        spec.back().width);
  kernel_ = make_kernel(choice.kernel, training().features, weights, context);
  if (weights && !standardise_of(*weights).empty())
    standardiser_ = standardiser_.with_x_of(
        units_of_weights(*weights, choice.kernel.weights, training().features));
  else if (weights && choice.standardise != "none")
    context.note(
        fmt::format("note: {} does not say the units of its inputs: they are standardised "
                    "by {} (--standardise none: taken as they are)",
                    choice.kernel.weights, choice.data));
  for (std::int64_t feature : standardiser_.constant_features())
    context.note(constant_note(training(), feature, choice.data));
  context.note(named_.order_note(table_));
  if (split_.held_out.rows > 0) check_inputs(split_.held_out, choice.data);
}

// Where the table has names, and the weights, too: in the order of these.
Examples RegressionTask::as_the_net_takes_them(Examples examples) const {
  if (!named_.apply_to(table_)) return examples;
  const std::vector<std::string> wanted = named_.examples(table_).names;
  const std::vector<std::string> had = training_examples(table_, choice_.target).names;
  std::vector<std::size_t> place;
  for (const std::string& name : wanted)
    place.push_back(
        static_cast<std::size_t>(std::find(had.begin(), had.end(), name) - had.begin()));
  const auto features = static_cast<std::size_t>(examples.features);
  Examples moved = examples;
  for (std::size_t i = 0; i < examples.x.size(); ++i)
    moved.x[i] = examples.x[i / features * features + place[i % features]];
  for (std::size_t k = 0; k < features; ++k) moved.names[k] = examples.names[place[k]];
  return moved;
}

Examples RegressionTask::test(const std::string& file) const {
  const Table rows = read_table(file, 1, ignored_as_in(table_, choice_.target));
  const Examples test = as_the_net_takes_them(test_examples(rows, table_, choice_.target));
  context_.note(order_note(rows, table_));
  check_inputs(test, file);
  return test;
}

// What an infinite kernel does not take, it says before the solve. Others' points are Jacobians.
void RegressionTask::check_inputs(const Examples& examples, const std::string& file) const {
  if (!choice_.kernel.infinite()) return;
  try {
    kernel_->points(inputs(examples));
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& problem) {
    throw DataError(file, fmt::format("standardised, rows from 0: {}", problem.what()));
  }
}

Tensor RegressionTask::inputs(const Examples& examples) const {
  return standardiser_.inputs(examples, context_.device);
}

Tensor RegressionTask::targets() const {
  return standardiser_.targets(training(), context_.device);
}

Regression RegressionTask::solve(Watch& watch) const {
  RegressionOptions options = options_of(choice_);
  const std::int64_t rows = training().rows;
  options.progress = [&](const char* stage, double done) {
    watch.update(fmt::format("{} of {} rows", stage, rows), done);
  };
  context_.note(plan_line(Regression::plan(*kernel_, rows, 1, options), rows));
  return Regression(kernel_, inputs(training()), targets(), options);
}

Json data_json(const RegressionChoice& choice, const RegressionTask& task, const Context& context) {
  Json json = kernel_json(choice.kernel, context);
  json.update({{"data", choice.data},
               {"target", choice.target},
               {"features", task.training().features},
               {"train_rows", task.training().rows},
               {"standardise", choice.standardise}});
  if (!choice.ignore.empty()) json["ignore"] = choice.ignore;
  return json;
}

Json regression_json(const RegressionChoice& choice, const RegressionTask& task,
                     const Regression& regression, const Context& context) {
  const SolveReport& report = regression.report();
  Json json = data_json(choice, task, context);
  json.update({{"ridge", report.ridge},
               {"ridge_relative", choice.ridge_relative},
               {"mean_diagonal", report.mean_diagonal},
               {"sweeps", report.sweeps},
               {"residual", report.residual},
               {"preconditioner_shift", report.shift},
               {"gram_seconds", report.gram_seconds},
               {"factor_seconds", report.factor_seconds},
               {"solve_seconds", report.solve_seconds}});
  return json;
}

std::string solver_line(const Regression& regression) {
  const SolveReport& report = regression.report();
  return fmt::format(
      "ridge {} (mean diagonal {}); kernel {:.2f} s, factor {:.2f} s, solve {:.2f} s: residual "
      "{:.1e} after {} {}\n",
      brief(report.ridge, 4), brief(report.mean_diagonal, 4), report.gram_seconds,
      report.factor_seconds, report.solve_seconds, report.residual, report.sweeps,
      report.sweeps == 1 ? "sweep" : "sweeps");
}

}  // namespace keel
