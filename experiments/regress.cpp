// keel regress: kernel regression on any table of numbers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>

#include "../ntk/training_dynamics.h"
#include "output.h"
#include "regression_task.h"
#include "statistics.h"
#include "text_table.h"

namespace keel {
namespace {

struct RegressChoice {
  RegressionChoice regression;
  std::string test, save, std;
  std::optional<double> time, lr;
  std::optional<std::int64_t> epochs;

  bool converged() const { return !time && !epochs; }

  // gp where there is a posterior; before convergence the spread of an ensemble, where that is
  // known.
  std::string deviation() const {
    if (!std.empty()) return std;
    return converged() ? "gp" : regression.kernel.infinite() ? "ensemble" : "none";
  }
};

void check_choice(const RegressChoice& choice) {
  const auto refuse = [](const char* what) { throw UsageError("usage", what); };
  const RegressionChoice& regression = choice.regression;
  if (choice.std == "ensemble" && !regression.kernel.infinite())
    refuse("--std ensemble is for --mode infinite");
  if (choice.epochs.has_value() != choice.lr.has_value())
    refuse("--epochs and --lr need each other: they are those of full-batch gradient descent");
  if (choice.time && choice.epochs) refuse("got --time and --epochs, wanted one of them");
  if (choice.converged()) return;
  if (regression.ridge > 0 || regression.ridge_relative > 0)
    refuse("a ridge is for training to convergence: --time and --epochs stop early instead");
  if (choice.std == "gp") refuse("--std gp is for training to convergence");
}

// Predictions, however they were come by.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual Tensor mean(const Tensor& x) const = 0;
  virtual Tensor variance(const Tensor& x, const RegressChoice& choice,
                          const Context& context) const = 0;
  virtual Json numbers(const RegressChoice& choice, const RegressionTask& task,
                       const Context& context) const = 0;
  virtual std::string line() const = 0;
};

std::shared_ptr<const InfiniteKernel> nngp_of(const RegressChoice& choice, const Tensor& x,
                                              const Context& context) {
  return make_infinite(choice.regression.kernel, x.size(1), context, KernelOutput::nngp);
}

// The diagonal of covariance(rows, progress), [m], of so many rows of x at a time that no matrix of
// them all is made.
template <class F>
Tensor variance_in_blocks(const Tensor& x, const WorkProgress& progress, F covariance) {
  constexpr std::int64_t kRows = 1024;
  const std::int64_t m = x.size(0);
  std::vector<double> values;
  for (std::int64_t begin = 0; begin < m; begin += kRows) {
    const std::int64_t rows = std::min(kRows, m - begin);
    const Tensor block = covariance(x.slice(begin, begin + rows), [&](double done) {
      if (progress)
        progress((static_cast<double>(begin) + done * static_cast<double>(rows)) /
                 static_cast<double>(m));
    });
    const std::vector<double> all = block.template to_vector<double>();
    for (std::int64_t i = 0; i < rows; ++i)
      values.push_back(all[static_cast<std::size_t>(i * rows + i)]);
  }
  return Tensor::from(values, {m});
}

// Training to convergence: a solve.
class Converged : public Predictor {
 public:
  Converged(const RegressionTask& task, Watch& watch)
      : watch_(watch), regression_(task.solve(watch)) {}
  Tensor mean(const Tensor& x) const override { return regression_.predict(x, told("mean", x)); }
  Tensor variance(const Tensor& x, const RegressChoice& choice,
                  const Context& context) const override {
    const WorkProgress progress = told("deviation", x);
    if (choice.deviation() == "gp") return regression_.variance(x, progress);
    const auto nngp = nngp_of(choice, x, context);
    return variance_in_blocks(x, progress, [&](const Tensor& rows, const WorkProgress& told) {
      return regression_.ensemble_covariance(*nngp, rows, told);
    });
  }
  Json numbers(const RegressChoice& choice, const RegressionTask& task,
               const Context& context) const override {
    return regression_json(choice.regression, task, regression_, context);
  }
  std::string line() const override { return solver_line(regression_); }

 private:
  WorkProgress told(const char* what, const Tensor& x) const {
    return watch_.of(fmt::format("{} at {} rows", what, x.size(0)));
  }

  Watch& watch_;
  Regression regression_;
};

// Training for a while: an eigendecomposition.
class Stopped : public Predictor {
 public:
  Stopped(const RegressChoice& choice, const RegressionTask& task)
      : dynamics_(task.kernel(), task.inputs(task.training()), task.targets()),
        rows_(static_cast<double>(task.training().rows)),
        time_(choice.time ? TrainingTime::flow(*choice.time)
                          : TrainingTime::descent(*choice.epochs, 2 * *choice.lr / rows_)) {
    check(!choice.lr || *choice.lr <= largest_lr(), "regress",
          "got --lr {}, with which gradient descent diverges: wanted at most {}",
          choice.lr.value_or(0), brief_outward(largest_lr(), 4, -1));
  }
  Tensor mean(const Tensor& x) const override { return dynamics_.predict(x, time_); }
  Tensor variance(const Tensor& x, const RegressChoice& choice,
                  const Context& context) const override {
    const auto nngp = nngp_of(choice, x, context);
    return variance_in_blocks(x, {}, [&](const Tensor& rows, const WorkProgress&) {
      return dynamics_.ensemble_covariance(*nngp, rows, time_);
    });
  }
  Json numbers(const RegressChoice& choice, const RegressionTask& task,
               const Context& context) const override {
    Json json = data_json(choice.regression, task, context);
    if (choice.regression.kernel.infinite()) json["dtype"] = "f64";  // eigenvalues and all
    if (choice.time) {
      json["time"] = *choice.time;
    } else {
      json["epochs"] = *choice.epochs;
      json["lr"] = *choice.lr;
      json["largest_stable_lr"] = largest_lr();
    }
    json["largest_eigenvalue"] = dynamics_.eigenvalues().back();
    json["smallest_eigenvalue"] = dynamics_.eigenvalues().front();
    return json;
  }
  std::string line() const override {
    return fmt::format("eigenvalues from {} to {}: gradient descent is stable below --lr {}\n",
                       brief(dynamics_.eigenvalues().front()),
                       brief(dynamics_.eigenvalues().back()), brief_outward(largest_lr(), 4, -1));
  }

 private:
  double largest_lr() const { return dynamics_.largest_stable_step() * rows_ / 2; }

  TrainingDynamics dynamics_;
  double rows_;
  TrainingTime time_;
};

std::unique_ptr<Predictor> make_predictor(const RegressChoice& choice, const RegressionTask& task,
                                          std::optional<Watch>& watch, const Context& context) {
  if (choice.converged()) return std::make_unique<Converged>(task, watch.emplace(context));
  StatusLine status(context.shows_progress());  // LAPACK does not tell
  status.show(fmt::format("eigenvalues of {} rows ...", task.training().rows));
  return std::make_unique<Stopped>(choice, task);
}

// Standard deviations in y's own units, one a row; empty for --std none.
std::vector<double> deviations(const RegressChoice& choice, const RegressionTask& task,
                               const Predictor& predictor, const Examples& examples,
                               const Context& context) {
  if (choice.deviation() == "none") return {};
  std::vector<double> result =
      predictor.variance(task.inputs(examples), choice, context).to_vector<double>();
  for (double& value : result)
    value = std::sqrt(std::max(value, 0.0)) * task.standardiser().y_scale();
  return result;
}

// `rows` are their numbers, or where it is empty 0, 1, ...
std::string regression_csv(const std::vector<double>& mean, const std::vector<double>& std,
                           const std::vector<std::int64_t>& rows) {
  std::vector<std::string> header = {"row", "prediction"};
  if (!std.empty()) header.push_back("std");
  Csv csv(header);
  for (std::size_t row = 0; row < mean.size(); ++row) {
    csv.add(rows.empty() ? static_cast<std::int64_t>(row) : rows[row]).add(mean[row]);
    if (!std.empty()) csv.add(std[row]);
    csv.end_row();
  }
  return csv.text();
}

void add_fit(Json& numbers, std::vector<std::vector<std::string>>& table, const std::string& name,
             const std::vector<double>& predicted, const std::vector<double>& wanted) {
  const double error = rmse(predicted, wanted), r2 = r_squared(predicted, wanted);
  numbers[name + "_rmse"] = error;
  numbers[name + "_r2"] = r2;
  table.push_back({name, std::to_string(wanted.size()), brief(error, 4), brief(r2, 4)});
}

// In y's own units. Throws keel::Error where double does not hold one.
std::vector<double> predictions(const RegressionTask& task, const Predictor& predictor,
                                const Examples& examples, const std::string& file) {
  std::vector<double> result =
      task.standardiser().y_in_own_units(predictor.mean(task.inputs(examples)).to_vector<double>());
  for (std::size_t i = 0; i < result.size(); ++i)
    check(std::isfinite(result[i]), "regress", "{}: the prediction of row {} (from 0) is {}", file,
          i, result[i]);
  return result;
}

int run_regress(RegressChoice choice, Context& context) {
  check_choice(choice);
  const OutputFolder folder(context.options.out.empty() ? "out/regress" : context.options.out);
  const RegressionTask task(choice.regression, context);
  const Examples test = choice.test.empty() ? task.split().held_out : task.test(choice.test);
  check_apart({choice.save, folder.path("summary.json").string()},
              {choice.regression.data, choice.test, choice.regression.kernel.weights});
  if (!choice.save.empty()) check_writable(choice.save);

  std::optional<Watch> watch;
  const std::unique_ptr<const Predictor> predictor = make_predictor(choice, task, watch, context);
  Json numbers = predictor->numbers(choice, task, context);
  std::vector<std::vector<std::string>> table = {{"", "rows", "RMSE", "R^2"}};
  const Examples* saved = &task.training();
  std::vector<double> predicted =
      predictions(task, *predictor, task.training(), choice.regression.data);
  add_fit(numbers, table, "train", predicted, task.training().y);
  if (test.rows > 0) {
    saved = &test;
    predicted =
        predictions(task, *predictor, test, choice.test.empty() ? "a row held out" : choice.test);
    if (!choice.test.empty())
      numbers["test"] = choice.test;
    else
      numbers["hold_out"] = choice.regression.hold_out;
    numbers["test_rows"] = test.rows;
    if (!test.y.empty()) add_fit(numbers, table, "test", predicted, test.y);
  }
  if (!choice.save.empty()) {
    numbers["std"] = choice.deviation();
    numbers["saved"] = choice.save;
    write_file(choice.save,
               regression_csv(predicted, deviations(choice, task, *predictor, *saved, context),
                              task.split().rows));
  }
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << text_table(table, 1) << predictor->line();
  return 0;
}

}  // namespace

Run declare_regress(CLI::App& app) {
  const auto choice = std::make_shared<RegressChoice>();
  declare_regression(app, choice->regression);
  app.add_option("--test", choice->test, "table to predict; with the target, to be judged by");
  declare_hold_out(app, choice->regression.hold_out);
  app.add_option("--save", choice->save,
                 "write predictions of --test, or of the rows held out, or else of --data, as CSV "
                 "(rows count from 0)");
  app.add_option(
         "--std", choice->std,
         "the std column: gp, of a Gaussian process with the kernel as covariance (default); "
         "ensemble, of wide nets trained from other seeds; none. They presume a target as "
         "large as the kernel: --standardise xy makes it so")
      ->check(one_of({"gp", "ensemble", "none"}));
  app.add_option("--time", choice->time,
                 "stop gradient flow on half the summed squared error at this time")
      ->check(check_not_negative);
  app.add_option("--epochs", choice->epochs,
                 "stop full-batch gradient descent on the mean squared error after so many")
      ->check(check_whole(0, std::int64_t{1} << 53));
  app.add_option("--lr", choice->lr, "its step size")->check(check_positive);
  app.footer(
      "The prediction is Theta(x, X) (Theta(X, X) + ridge I)^-1 y: the mean over initialisations "
      "of "
      "wide nets trained to convergence.\nWrites summary.json into --out (default out/regress).");
  return [choice](Context& context) { return run_regress(*choice, context); };
}

}  // namespace keel
