// Kernel regression: what an infinitely wide net trained to convergence predicts on average, and
// how much trained nets differ.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernel.h"

namespace keel {

class KernelSystem;

/// What is added to the diagonal: `absolute` itself, or `relative` times the mean diagonal. At most
/// one of them is not zero.
struct Ridge {
  double absolute = 0, relative = 0;
};

struct RegressionOptions {
  Ridge ridge{};
  DType factor = DType::f32;  ///< of the Cholesky factor; alpha is as accurate either way
  /// Aimed at: the largest |y - (Theta + ridge I) alpha| / |y|, in the 2-norm. Where double has no
  /// more digits to give, up to 1e-8 is taken; report().residual is what was reached.
  double tolerance = 1e-10;
  int most_sweeps = 200;  ///< products with Theta in double

  /// Told how much of a stage, "kernel", "factor" or "solve", is done, from 0 to 1, while the
  /// regression is made. What it throws ends that.
  std::function<void(const char* stage, double done)> progress{};
};

/// Bytes that a regression of n rows takes, known before it starts.
struct MemoryPlan {
  std::size_t matrix = 0;   ///< the factor; a float64 one has Theta in its other triangle
  std::size_t kept = 0;     ///< Theta in double beside a float32 factor, where there is room
  std::size_t vectors = 0;  ///< everything else
  std::size_t total() const { return matrix + kept + vectors; }
};

struct SolveReport {
  double ridge = 0;  ///< the value added to the diagonal
  double mean_diagonal = 0;
  int sweeps = 0;       ///< products with Theta in double that it took
  double residual = 0;  ///< reached, relative, the largest of the targets
  double shift = 0;     ///< added to the unit diagonal of the float32 preconditioner
  double gram_seconds = 0, factor_seconds = 0, solve_seconds = 0;
};

class Regression {
 public:
  /// Beyond this come the kernel's Points.
  static MemoryPlan plan(const Kernel& kernel, std::int64_t rows, std::int64_t targets,
                         const RegressionOptions& options);

  /// x [n, d], y [n, k], float64, on the kernel's device, n >= 1. Throws NotPositiveDefinite,
  /// OutOfMemory (before anything is allocated), ShapeError, DeviceError, or Error: NaN or infinity
  /// in x or y, a residual that double cannot reach.
  Regression(std::shared_ptr<const Kernel> kernel, const Tensor& x, const Tensor& y,
             RegressionOptions options = {});
  ~Regression();
  Regression(Regression&&) noexcept;
  Regression& operator=(Regression&&) noexcept;

  const Kernel& kernel() const { return *kernel_; }
  const Kernel::Points& points() const { return *points_; }
  const Tensor& targets() const { return y_; }  ///< y [n, k] float64
  const SolveReport& report() const { return report_; }
  const Tensor& alpha() const { return alpha_; }  ///< (Theta + ridge I)^-1 y, [n, k] float64
  std::vector<double> data_fit() const;           ///< y' alpha of each target

  /// Mean prediction at x [m, d] -> [m, k] float64, in blocks of rows.
  Tensor predict(const Tensor& x, const WorkProgress& progress = {}) const;

  /// Theta(x, x) - Theta(x, X) (Theta + ridge I)^-1 Theta(X, x): the variance of a Gaussian process
  /// with covariance Theta -> [m] float64. Accurate to about 1e-15 times the condition number times
  /// Theta(x, x), whatever the factor's dtype; what rounding turns negative is 0.
  Tensor variance(const Tensor& x, const WorkProgress& progress = {}) const;

  /// Covariance over the ensemble of nets trained to convergence, whose covariance at
  /// initialisation is `nngp`, a kernel of the same inputs on the same device (Lee et al. 2019,
  /// arXiv 1902.06720, eq. 16, with the ridge) -> [m, m] float64, symmetric, no diagonal entry
  /// below 0.
  Tensor ensemble_covariance(const Kernel& nngp, const Tensor& x,
                             const WorkProgress& progress = {}) const;

  /// Smallest eigenvalue of Theta + ridge I, by Lanczos iterations with the inverse: an estimate
  /// from above, usually within 1%, which nothing proves. Up to 100 solves.
  double smallest_eigenvalue() const;

 private:
  std::shared_ptr<const Kernel> kernel_;
  std::shared_ptr<const Kernel::Points> points_;
  Tensor x_, y_, alpha_;
  double tolerance_;
  SolveReport report_;
  std::unique_ptr<KernelSystem> system_;
};

}  // namespace keel
