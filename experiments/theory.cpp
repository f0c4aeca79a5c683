// keel reproduce theory: one page of the paper's statements with numbers, and the picture of kernel
// regression far outside the data, with the certificate as a band.
#include "progress_bar.h"
#include "reproduce.h"
#include "theory_checks.h"
#include "theory_page.h"

namespace keel {
namespace {

std::string curves_csv(const std::vector<ToyRegression>& regressions, Device device) {
  const std::vector<double> x = evenly_spaced(-kCurveEnd, kCurveEnd, kCurvePoints);
  const Tensor inputs = rows_of(x, 1).to(device);
  Csv csv({"dataset", "net", "x", "mean", "bound_at_x", "bound"});
  for (const ToyRegression& one : regressions) {
    const Kernel& kernel = one.regression->kernel();
    const std::vector<double> mean = one.regression->predict(inputs).to_vector<double>();
    const std::vector<double> theta = kernel.diag(*kernel.points(inputs)).to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i)
      csv.add(one.data->name)
          .add(one.net->name)
          .add(x[i])
          .add(mean[i])
          .add(one.certificate.at(theta[i]))
          .add(one.certificate.bound)
          .end_row();
  }
  return csv.text();
}

std::string training_csv() {
  Csv csv({"dataset", "x", "y"});
  for (const ToyData& data : toy_data())
    for (double x : evenly_spaced(-kToyEnd, kToyEnd, kToyPoints))
      csv.add(data.name).add(x).add(data.f(x)).end_row();
  return csv.text();
}

}  // namespace

Reproduced reproduce_theory(const Context& context, const ReproduceOptions& chosen,
                            const OutputFolder& folder) {
  const std::int64_t seeds = chosen.seeds.value_or(10);
  ProgressBar bar("theory", convergence_nets(seeds), context.shows_progress());
  std::int64_t done = 0;
  bar.update(done);
  const std::vector<ToyRegression> regressions = toy_regressions(context.device);
  const Sections sections = {
      {"diagonals of two hidden layers", check_diagonals()},
      {"growth of Theta(x,x)", check_growth()},
      {"widening nets", check_convergence(seeds, context, [&] { bar.update(++done); })},
      {"explosion without LN", check_explosion(context.device)},
      {"certificate against search, |x| to 1e6", check_certificates(regressions)},
      {"LN alone does not bound every minimiser", check_minimisers(context)}};
  folder.write("curves.csv", curves_csv(regressions, context.device));
  folder.write("training.csv", training_csv());

  return theory_page(
      sections,
      {{"toy_ridge_relative", kToyRidge}, {"seeds", seeds}, {"first_seed", context.options.seed}});
}

}  // namespace keel
