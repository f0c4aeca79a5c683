#include "kernel_system.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "../kernels/cholesky.h"
#include "../kernels/diagonal_inverses.h"
#include "../kernels/solve_lower.h"
#include "../kernels/symmetric_product.h"
#include "../kernels/triangle.h"
#include "lanczos.h"
#include "repeated_rows.h"

namespace keel {
namespace {

using std::int64_t;

/// Adds the seconds that f takes, on the device too.
template <class F>
void timed(Device device, double& seconds, F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  synchronize(device);
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Tensor to_device(const std::vector<double>& values, Device device) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())}, device);
}

}  // namespace

KernelSystem::KernelSystem(std::shared_ptr<const Kernel> kernel,
                           std::shared_ptr<const Kernel::Points> points, const Tensor& x,
                           const RegressionOptions& options, std::size_t kept, SolveReport& report)
    : kernel_(std::move(kernel)),
      points_(std::move(points)),
      x_(x),
      options_(options),
      rows_(x.size(0)) {
  const std::vector<double> theta = kernel_->diag(*points_).to_vector<double>();
  for (int64_t i = 0; i < rows_; ++i) {
    check(std::isfinite(theta[i]), "regression", "Theta(x, x) is {} for row {} of x (from 0)",
          theta[i], i);
    mean_diagonal_ += (theta[i] - mean_diagonal_) / static_cast<double>(i + 1);
  }
  ridge_ = options.ridge.absolute + options.ridge.relative * mean_diagonal_;
  report.ridge = ridge_;
  report.mean_diagonal = mean_diagonal_;
  if (ridge_ == 0 && !repeated_rows(x_.to_vector<double>(), x_.size(1)).empty())
    refuse(-1, "is singular", kUnknown);
  for (int64_t i = 0; i < rows_; ++i) {
    if (!(theta[i] + ridge_ > 0)) refuse(i, "is not positive definite", theta[i] + ridge_);
    scale_.push_back(1 / std::sqrt(theta[i] + ridge_));
  }
  check_range(options.factor == DType::f32 && kept == 0);
  if (options.factor == DType::f64) {
    factor_double(report);
  } else {
    if (kept > 0) {
      kept_ = Tensor::empty({rows_, rows_}, DType::f64, kernel_->device());
      gram_lower(kept_, report);
    }
    factor_float(report);
  }
}

WorkProgress KernelSystem::enter(const char* stage) const {
  if (!options_.progress) return {};
  options_.progress(stage, 0);
  return [this, stage](double done) { options_.progress(stage, done); };
}

void KernelSystem::gram_lower(const Tensor& into, SolveReport& report) const {
  const WorkProgress progress = enter("kernel");
  timed(into.device(), report.gram_seconds, [&] { kernel_->gram_lower(*points_, into, progress); });
}

// The factor is only a preconditioner: where float32 loses what keeps Theta definite, a shift of
// its diagonal costs iterations and no accuracy. Rounding moves eigenvalues by about sqrt(n)
// epsilon.
void KernelSystem::factor_float(SolveReport& report) {
  constexpr double kLargestShift = 0.1;
  const Device device = kernel_->device();
  const Tensor scale = to_device(scale_, device);
  factor_ = Tensor::empty({rows_, rows_}, DType::f32, device);
  std::optional<int64_t> pivot;
  for (double shift = 0; shift <= kLargestShift;
       shift = shift == 0 ? std::sqrt(static_cast<double>(rows_)) * kFloatEpsilon : 10 * shift) {
    if (!kept_.defined()) gram_lower(factor_, report);
    const WorkProgress progress = enter("factor");
    timed(device, report.factor_seconds, [&] {
      scale_lower(kept_.defined() ? kept_ : factor_, scale, 1 + shift, factor_);
      pivot = cholesky(factor_, progress);
      if (!pivot) prepare_solves();
    });
    report.shift = shift_ = shift;
    if (!pivot) return;
  }
  refuse(*pivot, "is far from positive definite", kUnknown);
}

void KernelSystem::factor_double(SolveReport& report) {
  const Device device = kernel_->device();
  factor_ = Tensor::empty({rows_, rows_}, DType::f64, device);
  gram_lower(factor_, report);
  std::optional<int64_t> pivot;
  const WorkProgress progress = enter("factor");
  timed(device, report.factor_seconds, [&] {
    std::vector<double> shifted = diagonal(factor_).to_vector<double>();
    for (double& value : shifted) value += ridge_;
    diagonal_ = to_device(shifted, device);
    swap_diagonal(factor_, diagonal_.clone());
    if (!kernel_->cheap_product()) mirror_lower(factor_);  // Theta for the residual, in free space
    pivot = cholesky(factor_, progress);
    if (!pivot) prepare_solves();
  });
  if (pivot) refuse(*pivot, "is not positive definite", eigenvalue_at(*pivot));
}

void KernelSystem::prepare_solves() {
  if (factor_.device().is_cuda()) inverses_ = invert_diagonal_blocks(factor_);
}

Tensor KernelSystem::product(const Tensor& v) const {
  const Device device = kernel_->device();
  const Tensor at_home = v.to(device);
  const bool mirrored = options_.factor == DType::f64 && !kernel_->cheap_product();
  if (mirrored) {
    const Tensor into = Tensor::empty(v.shape(), DType::f64, device);
    const Tensor of_factor = diagonal_.clone();
    swap_diagonal(factor_, of_factor);
    symmetric_product(factor_, Triangle::upper, at_home, into);
    swap_diagonal(factor_, of_factor);
    return into.to(Device::cpu());
  }
  Tensor theta_v;
  if (kept_.defined()) {
    theta_v = Tensor::empty(v.shape(), DType::f64, device);
    symmetric_product(kept_, Triangle::lower, at_home, theta_v);
  } else {
    theta_v = kernel_->product(*points_, at_home);
  }
  const Tensor into = theta_v.to(Device::cpu());
  double* out = into.data<double>();
  const double* in = v.data<double>();
  for (int64_t i = 0; i < v.elements(); ++i) out[i] += ridge_ * in[i];
  return into;
}

Tensor KernelSystem::precondition(const Tensor& r) const {
  const int64_t n = r.size(0), k = r.size(1);
  const bool in_float = options_.factor == DType::f32;
  // Scaled to 1, column by column: float32 has no room for 1e-50.
  std::vector<double> largest(k, 0.0);
  const double* from = r.data<double>();
  const auto scale = [&](int64_t i) { return in_float ? scale_[i] : 1.0; };
  constexpr int64_t kColumns = 32;
#pragma omp parallel for if (k > kColumns)
  for (int64_t first = 0; first < k; first += kColumns)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = first; j < std::min(k, first + kColumns); ++j)
        largest[j] = std::max(largest[j], std::abs(from[i * k + j]) * scale(i));
  for (double& v : largest) v = v > 0 ? v : 1;
  const Tensor scaled = Tensor::empty({n, k}, DType::f64);
  double* to = scaled.data<double>();
#pragma omp parallel for if (k > kColumns)
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) to[i * k + j] = from[i * k + j] * scale(i) / largest[j];
  const Tensor b = scaled.to(options_.factor).to(kernel_->device());
  solve_lower(factor_, b, inverses_);
  solve_lower_transposed(factor_, b, inverses_);
  const Tensor z = b.to(Device::cpu()).to(DType::f64);
  double* out = z.data<double>();
#pragma omp parallel for if (k > kColumns)
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) out[i * k + j] *= scale(i) * largest[j];
  return z;
}

CgResult KernelSystem::iterate(const Tensor& b, const Tensor& x, double tolerance,
                               const WorkProgress& progress) const {
  constexpr double kRounding = 1e-8;  // as RegressionOptions::tolerance says
  CgResult result = conjugate_gradients([&](const Tensor& v) { return product(v); },
                                        [&](const Tensor& r) { return precondition(r); }, b, x,
                                        tolerance, options_.most_sweeps, progress);
  if (result.outcome == CgResult::negative_curvature)
    refuse(-1, "is not positive definite in double", result.curvature);
  if (result.outcome == CgResult::converged) return result;
  if (result.outcome == CgResult::stagnated && result.residual <= kRounding) return result;
  const double wanted = result.outcome == CgResult::stagnated ? kRounding : tolerance;
  const std::string reached =
      fmt::format("a relative residual of {:.1e} after {} sweeps, wanted {:.1e}", result.residual,
                  result.products, std::max(wanted, tolerance));
  if (shift_ > 0) refuse(-1, "is too near to singular: " + reached, kUnknown);
  constexpr double kSome = 1e-6;  // of the diagonal
  fail("regression", "got {}: take a {}{}", reached,
       ridge_ > 0 ? fmt::format("larger ridge than {:.3g}", ridge_)
                  : fmt::format("ridge, of {:.1e} say", kSome * mean_diagonal_),
       options_.factor == DType::f32 ? ", or factor in double (--dtype f64)" : "");
}

Tensor KernelSystem::solve(const Tensor& b, double tolerance, SolveReport& report) const {
  Tensor x;
  const WorkProgress progress = enter("solve");
  timed(kernel_->device(), report.solve_seconds, [&] {
    const bool direct = options_.factor == DType::f64;
    x = direct ? precondition(b) : Tensor::zeros(b.shape(), DType::f64);
    const CgResult result = iterate(b, x, tolerance, progress);
    report.sweeps = result.products;
    report.residual = result.residual;
  });
  return x;
}

Tensor KernelSystem::solve_many(const Tensor& b, double tolerance,
                                const WorkProgress& progress) const {
  if (options_.factor == DType::f64) return precondition(b);
  const Tensor x = Tensor::zeros(b.shape(), DType::f64);
  iterate(b, x, tolerance, progress);
  return x;
}

// With z near the solution and r = b - A z, b'z + r'z misses b'A^-1 b by r'A^-1 r alone: a residual
// of 1e-8 costs no more than rounding does in double.
std::vector<double> KernelSystem::quadratic_forms(const Tensor& b,
                                                  const WorkProgress& progress) const {
  constexpr double kTolerance = 1e-8;
  const int64_t n = b.size(0), k = b.size(1);
  std::vector<double> forms(k, 0.0);
  Tensor left, right;
  if (options_.factor == DType::f64) {
    const Tensor half = b.clone().to(kernel_->device());
    solve_lower(factor_, half, inverses_);
    left = right = half.to(Device::cpu());
  } else {
    left = Tensor::zeros(b.shape(), DType::f64);
    right = iterate(b, left, kTolerance, progress).r;
    accumulate(right, b);
  }
  const double *x = left.data<double>(), *y = right.data<double>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) forms[j] += x[i * k + j] * y[i * k + j];
  return forms;
}

double KernelSystem::smallest_eigenvalue() const {
  constexpr double kTolerance = 1e-6;
  return 1 / largest_eigenvalue([&](const Tensor& v) { return solve_many(v, kTolerance); }, rows_);
}

}  // namespace keel
