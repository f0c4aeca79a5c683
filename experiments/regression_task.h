// A kernel regression on a table: what `keel regress` and `keel certify` share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../ntk/regression.h"
#include "examples.h"
#include "feature_names.h"
#include "hold_out.h"
#include "kernel_choice.h"
#include "standardiser.h"
#include "watch.h"

namespace keel {

struct RegressionChoice {
  KernelChoice kernel;
  std::string data, target, standardise;  ///< "": as the net of --weights was trained, or x
  std::vector<std::string> ignore{};
  double ridge = 0, ridge_relative = 0;
  double hold_out = 0;  ///< as split_of() has it
};

/// --data, --target, --standardise, --ridge, --ridge-relative and the kernel's options.
void declare_regression(CLI::App& app, RegressionChoice& choice);

/// The training rows, read, checked and standardised, and the kernel; nothing is solved yet.
class RegressionTask {
 public:
  /// What the options leave open in `choice`, which must outlive it, is as --weights say.
  RegressionTask(RegressionChoice& choice, const Context& context);

  const Table& table() const { return table_; }
  /// Its features, where it and the weights have names, in the order of the weights'.
  const Examples& training() const { return split_.training; }
  const RowSplit& split() const { return split_; }
  const Standardiser& standardiser() const { return standardiser_; }
  const std::shared_ptr<const Kernel>& kernel() const { return kernel_; }

  /// The examples of --test. Throws DataError where they do not fit the table that is trained on,
  /// or where an infinite kernel does not take them.
  Examples test(const std::string& file) const;

  /// Features, standardised, [rows, d] float64 on the device.
  Tensor inputs(const Examples& examples) const;

  /// The standardised target, [rows, 1] float64 on the device.
  Tensor targets() const;

  /// Says what memory it will take, then solves. Throws what Regression and Watch throw.
  Regression solve(Watch& watch) const;

 private:
  RegressionTask(const RegressionChoice& choice, const std::optional<SafeTensors>& weights,
                 const Context& context);
  Examples as_the_net_takes_them(Examples examples) const;
  void check_inputs(const Examples& examples, const std::string& file) const;

  const RegressionChoice& choice_;
  const Context& context_;
  NamedFeatures named_;
  Table table_;
  RowSplit split_;
  Standardiser standardiser_;
  std::shared_ptr<const Kernel> kernel_;
};

/// For summary.json: the kernel and the data.
Json data_json(const RegressionChoice& choice, const RegressionTask& task, const Context& context);

/// And the ridge as given and as used, and what the solver did.
Json regression_json(const RegressionChoice& choice, const RegressionTask& task,
                     const Regression& regression, const Context& context);

/// A line for people: ridge, sweeps, residual, seconds.
std::string solver_line(const Regression& regression);

}  // namespace keel
