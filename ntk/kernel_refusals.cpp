// What a KernelSystem refuses, and what it says of it.
#include <algorithm>
#include <cmath>

#include "../kernels/cholesky.h"
#include "../kernels/solve_lower.h"
#include "../kernels/triangle.h"
#include "kernel_system.h"
#include "repeated_rows.h"

namespace keel {

using std::int64_t;

// Squares of what is solved for must not leave double; nor a kernel made in float32 that.
void KernelSystem::check_range(bool in_float) const {
  const double least = in_float ? 1e-30 : 1e-150, most = in_float ? 1e36 : 1e150;
  for (int64_t i = 0; i < rows_; ++i) {
    const double size = 1 / (scale_[i] * scale_[i]);
    check(size >= least && size <= most, "regression",
          "Theta(x, x) + ridge is {:.3g} for row {} of x (from 0), wanted {} to {}: {}", size, i,
          least, most, in_float ? "factor in double (--dtype f64)" : "scale the inputs or the net");
  }
}

// With L of the rows above the pivot, (-w, 1) where w solves for the pivot's row is a direction of
// no positive curvature: its Rayleigh quotient bounds the smallest eigenvalue from above.
double KernelSystem::eigenvalue_at(int64_t pivot) const {
  const Device device = kernel_->device();
  const double corner = diagonal_.slice(pivot, pivot + 1).item();
  if (pivot == 0 || !std::isfinite(corner)) return corner;
  const Tensor row = Tensor::empty({1, pivot}, DType::f64, device);
  kernel_->gram(*kernel_->points(x_.slice(pivot, pivot + 1)), *kernel_->points(x_.slice(0, pivot)),
                row);
  // What a GPU leaves of a factor that it gave up is not known: made again, of these rows.
  const bool again = device.is_cuda();
  if (again) kernel_->gram_lower(*points_, factor_);
  fill(factor_.slice(pivot, rows_), 0);  // the identity, below what was factored
  std::vector<double> ends = (again ? diagonal_ : diagonal(factor_)).to_vector<double>();
  std::fill(ends.begin() + pivot, ends.end(), 1.0);
  swap_diagonal(factor_, Tensor::from(ends, {rows_}, device));
  if (again && cholesky(factor_)) return kUnknown;
  const Tensor w = Tensor::zeros({rows_, 1}, DType::f64, device);
  copy(w.slice(0, pivot), row);
  solve_lower(factor_, w);
  solve_lower_transposed(factor_, w);
  const std::vector<double> solution = w.to_vector<double>(), a = row.to_vector<double>();
  double schur = corner, norm = 1;
  for (int64_t i = 0; i < pivot; ++i) {
    schur -= a[i] * solution[i];
    norm += solution[i] * solution[i];
  }
  return schur / norm;
}

void KernelSystem::refuse(int64_t pivot, const std::string& found, double eigenvalue) const {
  constexpr std::size_t kNamed = 5;
  auto repeated = repeated_rows(x_.to_vector<double>(), x_.size(1));
  if (pivot < 0 && !repeated.empty()) pivot = repeated.front().first;
  std::string message = fmt::format("Theta of {} rows {}", rows_, found);
  if (ridge_ > 0) message = fmt::format("Theta of {} rows + ridge {:.3g} {}", rows_, ridge_, found);
  if (pivot >= 0) message += fmt::format(", pivot {} (from 0)", pivot);
  if (std::isfinite(eigenvalue))
    message += fmt::format(", smallest eigenvalue about {:.2g} or less", eigenvalue);
  if (!repeated.empty()) {
    message +=
        fmt::format("; {} of its input rows (from 0) are as an earlier one: ", repeated.size());
    for (std::size_t i = 0; i < std::min(kNamed, repeated.size()); ++i)
      message += fmt::format("{}{} = {}", i ? ", " : "", repeated[i].first, repeated[i].second);
    if (repeated.size() > kNamed) message += ", ...";
  }
  // Above what rounding in float32 takes away, and above what was found to be missing.
  double enough =
      std::max(10 * ridge_, kFloatEpsilon * static_cast<double>(rows_) * mean_diagonal_);
  if (std::isfinite(eigenvalue)) enough = std::max(enough, ridge_ + 4 * std::abs(eigenvalue));
  if (enough > 0)
    message += fmt::format("; a ridge of {:.1e} (--ridge {:.1e}) makes it positive definite",
                           enough, enough);
  throw NotPositiveDefinite("regression", message, pivot, std::move(repeated));
}

}  // namespace keel
