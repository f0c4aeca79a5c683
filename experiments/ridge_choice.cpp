#include "ridge_choice.h"

#include <algorithm>
#include <cmath>

#include "statistics.h"

namespace keel {

RidgeChoice choose_ridge(const std::shared_ptr<const Kernel>& kernel, const Tensor& x,
                         const Tensor& y, std::int64_t most_rows, const WorkProgress& progress) {
  const std::int64_t n = x.size(0);
  check(n >= 3, "ridge", "got {} rows to choose a ridge by, wanted at least 3", n);
  const std::int64_t fit = std::min(most_rows, 2 * n / 3), judge = std::min(fit / 2, n - fit);
  check(judge >= 1, "ridge", "got {} of {} rows to choose a ridge by, wanted at least 2", fit, n);
  const Tensor held_out = x.slice(fit, fit + judge);
  const std::vector<double> wanted = y.slice(fit, fit + judge).to_vector<double>();
  RidgeChoice choice;
  choice.tried = Json::array();
  double least = 0;
  constexpr int kLeast = -8, kMost = 0;
  for (int half_decade = kLeast; half_decade <= kMost; ++half_decade) {
    RegressionOptions options;
    options.ridge.relative = std::pow(10, half_decade / 2.0);
    options.tolerance = 1e-6;
    const auto tell = [&](double solves) {
      if (progress) progress((half_decade - kLeast + solves) / (kMost - kLeast + 1));
    };
    options.progress = [&](const char*, double) { tell(0); };
    const Regression regression(kernel, x.slice(0, fit), y.slice(0, fit), options);
    const double error = rmse(regression.predict(held_out).to_vector<double>(), wanted);
    tell(1);
    choice.tried.push_back({{"ridge_relative", options.ridge.relative}, {"rmse", error}});
    if (choice.relative > 0 && error >= least) continue;
    choice.relative = options.ridge.relative;
    least = error;
  }
  return choice;
}

}  // namespace keel
