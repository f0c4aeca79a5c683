// KernelSystem: Theta(X, X) + ridge I, factored, and solved with to the accuracy of double.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "conjugate_gradients.h"
#include "regression.h"

namespace keel {

class KernelSystem {
 public:
  /// x [n, d] float64, finite. Fills in the report's ridge, shift and seconds.
  KernelSystem(std::shared_ptr<const Kernel> kernel, std::shared_ptr<const Kernel::Points> points,
               const Tensor& x, const RegressionOptions& options, std::size_t kept,
               SolveReport& report);

  std::int64_t rows() const { return rows_; }

  /// (Theta + ridge I)^-1 b to a relative residual, for b [n, k] float64 on the CPU. Throws
  /// NotPositiveDefinite, or Error where the residual cannot be reached.
  Tensor solve(const Tensor& b, double tolerance, SolveReport& report) const;

  /// The same for right sides by the hundred; a float64 factor is trusted without a residual.
  Tensor solve_many(const Tensor& b, double tolerance, const WorkProgress& progress = {}) const;

  /// b' (Theta + ridge I)^-1 b of each column, as accurate as a float64 factor makes it.
  std::vector<double> quadratic_forms(const Tensor& b, const WorkProgress& progress = {}) const;

  /// Smallest eigenvalue, by Lanczos iterations with the inverse.
  double smallest_eigenvalue() const;

 private:
  static constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  void gram_lower(const Tensor& into, SolveReport& report) const;
  void factor_float(SolveReport& report);
  void factor_double(SolveReport& report);
  void prepare_solves();
  CgResult iterate(const Tensor& b, const Tensor& x, double tolerance,
                   const WorkProgress& progress) const;
  void check_range(bool in_float) const;
  WorkProgress enter(const char* stage) const;  // and tells that nothing of it is done
  Tensor product(const Tensor& v) const;        // with Theta + ridge I, in double
  Tensor precondition(const Tensor& r) const;   // with the inverse of the factored matrix
  [[noreturn]] void refuse(std::int64_t pivot, const std::string& found, double eigenvalue) const;
  double eigenvalue_at(std::int64_t pivot) const;

  std::shared_ptr<const Kernel> kernel_;
  std::shared_ptr<const Kernel::Points> points_;
  Tensor x_;
  RegressionOptions options_;
  std::int64_t rows_;
  double ridge_ = 0, mean_diagonal_ = 0, shift_ = 0;
  std::vector<double> scale_;  // float32: diag(scale) (Theta + ridge I) diag(scale) is factored
  Tensor factor_;              // float64: Theta above its diagonal
  Tensor inverses_;            // of the factor's diagonal blocks; on the CPU undefined
  Tensor diagonal_;            // float64 factor: Theta's and the ridge
  Tensor kept_;                // Theta's lower triangle in double, or undefined
};

}  // namespace keel
