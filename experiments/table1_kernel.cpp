// The theory's own object in Table 1: the regression with the kernel of infinitely wide nets,
// solved exactly, in the paper's scaling (sigma_w^2 = 1 in the first layer, 2 in the others,
// sigma_b^2 = 0.01; LN without gain and bias; NTK parameterisation). Inputs and target are
// standardised: the prior mean of a net at initialisation is 0.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../ntk/certificate.h"
#include "interrupt.h"
#include "progress_bar.h"
#include "ridge_choice.h"
#include "standardiser.h"
#include "table1_member.h"
#include "theory_setting.h"

namespace keel {
namespace {

constexpr std::int64_t kFitRows = 8000;  // half as many judge

/// Draws a bar of a member's stages, and stops them.
class Teller {
 public:
  Teller(const Member& member, const Context& context, StopFlag stop)
      : method_(member.method), stop_(stop), bar_(context.shows_progress()) {}
  void update(std::string_view stage, double done) {
    if (raised(stop_)) throw Interrupted();
    bar_.update(fmt::format("{}: {}", method_, stage), done);
  }

 private:
  const std::string& method_;
  StopFlag stop_;
  StageBar bar_;
};

}  // namespace

Outcome solve_kernel(const Member& member, const Protein& protein, const ProteinSplit& split,
                     const Table1Options& options, const Context& context, StopFlag stop) {
  const Examples training = examples_at(protein.rows, split.train);
  const Standardiser standardiser(Standardise::xy, training);
  const Tensor x = standardiser.inputs(training, context.device);
  const Tensor y = standardiser.targets(training, context.device);
  const std::int64_t rows =
      options.ntk_rows == 0 ? training.rows : std::min(options.ntk_rows, training.rows);
  const auto kernel = paper_kernel(member.spec(), training.features, context.device);

  RidgeChoice ridge;
  if (options.ntk_ridge) {
    ridge.relative = *options.ntk_ridge;
  } else {
    const std::int64_t fit = std::min(kFitRows, rows);
    context.note(fmt::format("{}: choosing the ridge on {} rows", member.method, fit));
    Teller teller(member, context, stop);
    ridge = choose_ridge(kernel, x, y, fit, [&](double done) { teller.update("choosing", done); });
  }
  RegressionOptions solver;
  solver.ridge.relative = ridge.relative;
  context.note(fmt::format("{}: {} rows, relative ridge {:.3g}, {} of memory", member.method, rows,
                           ridge.relative,
                           human_bytes(Regression::plan(*kernel, rows, 1, solver).total())));
  Teller teller(member, context, stop);
  solver.progress = [&](const char* stage, double done) { teller.update(stage, done); };
  const Regression regression(kernel, x.slice(0, rows), y.slice(0, rows), solver);
  const auto predict = [&](const std::vector<std::int64_t>& at) {
    const Tensor points = standardiser.inputs(examples_at(protein.rows, at), context.device);
    const Tensor mean =
        regression.predict(points, [&](double done) { teller.update("predictions", done); });
    return standardiser.y_in_own_units(mean.to_vector<double>());
  };
  Outcome outcome;
  outcome.id = predict(split.id);
  outcome.ood = predict(split.ood);

  const Supremum supremum = kernel->supremum();
  const Certificate certificate = certify(
      regression, supremum.bounded ? supremum.value : std::numeric_limits<double>::infinity(), 0,
      false);
  const SolveReport& report = regression.report();
  const double y_mean = standardiser.y_mean(), y_scale = standardiser.y_scale();
  double largest = 0;
  for (const auto* values : {&outcome.id, &outcome.ood})
    for (double value : *values) largest = std::max(largest, std::abs(value - y_mean));
  outcome.details = {{"net", member.spec()},
                     {"train_rows", rows},
                     {"ridge_relative", ridge.relative},
                     {"ridges_tried", ridge.tried},
                     {"ridge", report.ridge},
                     {"supremum", certificate.supremum},
                     {"data_fit", certificate.data_fit},
                     {"target_mean", y_mean},
                     {"target_deviation", y_scale},
                     {"bound", y_scale * certificate.bound},
                     {"largest_found", largest},
                     {"gram_seconds", report.gram_seconds},
                     {"factor_seconds", report.factor_seconds},
                     {"solve_seconds", report.solve_seconds},
                     {"sweeps", report.sweeps},
                     {"residual", report.residual}};
  return outcome;
}

}  // namespace keel
