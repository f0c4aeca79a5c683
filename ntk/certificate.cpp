#include "certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keel {
namespace {

std::vector<double> column(const Tensor& matrix, std::int64_t j) {
  const std::vector<double> all = matrix.to_vector<double>();
  const auto cols = static_cast<std::size_t>(matrix.size(1));
  std::vector<double> values;
  for (std::size_t at = static_cast<std::size_t>(j); at < all.size(); at += cols)
    values.push_back(all[at]);
  return values;
}

// sqrt(a b) where the product would overflow, and 0 times infinity is 0: no data, no prediction.
double root_of_product(double a, double b) {
  return a == 0 || b == 0 ? 0 : std::sqrt(a) * std::sqrt(b);
}

void check_target(const Regression& regression, const char* who, std::int64_t target) {
  const std::int64_t targets = regression.alpha().size(1);
  check(target >= 0 && target < targets, who, "got target {}, wanted one from 0 to {}", target,
        targets - 1);
}

}  // namespace

bool Certificate::bounded() const { return std::isfinite(bound); }

double Certificate::at(double theta) const { return root_of_product(theta, data_fit + slack); }

Certificate certify(const Regression& regression, double supremum, std::int64_t target,
                    bool estimate_eigenvalue) {
  const Tensor& alpha = regression.alpha();
  check_target(regression, "certify", target);
  check(supremum >= 0, "certify", "got a supremum of {}, wanted one of at least 0", supremum);
  const std::vector<double> a = column(alpha, target), y = column(regression.targets(), target);
  double squares = 0, targets = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += a[i] * a[i];
    targets += y[i] * y[i];
    largest = std::max(largest, std::abs(y[i]));
  }
  const SolveReport& report = regression.report();
  const Kernel& kernel = regression.kernel();
  const auto n = static_cast<double>(a.size());
  const std::vector<double> diagonal = kernel.diag(regression.points()).to_vector<double>();
  double sizes = 0;  // of the features that f sums
  for (std::size_t i = 0; i < a.size(); ++i) sizes += std::abs(a[i]) * std::sqrt(diagonal[i]);

  Certificate result;
  result.supremum = supremum;
  result.data_fit = regression.data_fit()[static_cast<std::size_t>(target)];
  // (Theta + ridge I) alpha = y - r, so alpha^T Theta alpha = alpha^T y - ridge |alpha|^2 - alpha^T
  // r, of which each sum is rounded n times.
  const double sums = std::sqrt(squares) * report.residual * std::sqrt(targets) +
                      n * std::numeric_limits<double>::epsilon() *
                          (std::sqrt(squares * targets) + report.ridge * squares);
  // alpha solves with a Theta that is rounded itself, and so are its products' n terms; what the
  // ridge leaves unexplained makes up for it where the ridge is no smaller than rounding.
  const double a_term = kernel.rounding(regression.points()) +  // which may be infinite
                        n * std::numeric_limits<double>::epsilon();
  const double rounded = sizes > 0 ? a_term * sizes * sizes : 0;
  result.slack = sums + std::max(rounded - report.ridge * squares, 0.0);
  result.rkhs = std::max(result.data_fit - report.ridge * squares, 0.0) + sums + rounded;
  result.smallest_eigenvalue =
      estimate_eigenvalue ? regression.smallest_eigenvalue() : report.ridge;
  result.bound = root_of_product(supremum, result.data_fit + result.slack);
  result.tight = std::min(result.bound, root_of_product(supremum, result.rkhs));
  const double at_least = std::max(report.ridge, 0.99 * result.smallest_eigenvalue);
  result.loose =
      std::max(result.bound, root_of_product(supremum, n / at_least * largest * largest));
  return result;
}

RowFunction prediction_size(const Regression& regression, std::int64_t target) {
  check_target(regression, "prediction_size", target);
  return [&regression, target](const Tensor& x) {
    std::vector<double> values =
        column(regression.predict(x.to(regression.kernel().device())), target);
    for (double& value : values) value = std::abs(value);
    return values;
  };
}

RowFunction kernel_diagonal(const Kernel& kernel) {
  return [&kernel](const Tensor& x) {
    return kernel.diag(*kernel.points(x.to(kernel.device()))).to_vector<double>();
  };
}

std::optional<Found> exceed(const RowFunction& size, const std::vector<double>& x, double wanted) {
  const auto width = static_cast<std::int64_t>(x.size());
  double length = 0;
  for (double value : x) length = std::max(length, std::abs(value));
  check(length > 0, "exceed", "got the origin, wanted a direction");
  check(size != nullptr, "exceed", "got no function, wanted one to evaluate");
  Found found;
  for (const double step : {2.0, 0.5})
    for (double factor = 1;
         length * factor < kFarthestExceed && length * factor * kFarthestExceed > 1;
         factor *= step) {
      std::vector<double> at = x;
      for (double& value : at) value *= factor;
      const std::vector<double> values = size(Tensor::from(at, {1, width}));
      check<ShapeError>(values.size() == 1, "exceed", "got {} values for 1 point", values.size());
      const double reached = values[0];
      ++found.evaluations;
      if (!std::isfinite(reached)) break;
      if (reached > wanted) {
        found.value = reached;
        found.x = std::move(at);
        return found;
      }
    }
  return {};
}

}  // namespace keel
