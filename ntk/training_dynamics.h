// Training dynamics: what kernel regression predicts before it has converged.
#pragma once

#include <memory>
#include <vector>

#include "kernel.h"

namespace keel {

/// How long, and how, f is trained on the loss 1/2 sum (f - y)^2. keel's mse is a mean over n rows
/// and targets k: gradient descent on it with learning rate lr has step_size 2 lr / (n k).
class TrainingTime {
 public:
  /// Gradient flow df/dt = -rate Theta (f - y) up to t >= 0; infinity is convergence.
  static TrainingTime flow(double t, double rate = 1);

  /// steps >= 0 of gradient descent, f <- f - step_size Theta (f - y).
  static TrainingTime descent(std::int64_t steps, double step_size);

  /// The share of an eigenvector's error that is gone, and that share over the eigenvalue, which is
  /// more than 0.
  double gone(double eigenvalue) const;
  double gone_over(double eigenvalue) const { return gone(eigenvalue) / eigenvalue; }

  double step_size() const { return step_size_; }  ///< 0: flow

 private:
  TrainingTime(double time, std::int64_t steps, double step_size)
      : time_(time), steps_(steps), step_size_(step_size) {}
  double time_;  // of a flow, times its rate
  std::int64_t steps_;
  double step_size_;
};

class TrainingDynamics {
 public:
  /// x [n, d], y [n, k], float64, on the kernel's device. Decomposes Theta(x, x) in double: O(n^3)
  /// work, 32 n^2 bytes. Throws as Regression does, but takes a Theta that is singular: what no
  /// gradient reaches stays as it was. Eigenvalues below n epsilon times the largest are rounding,
  /// and count as 0.
  TrainingDynamics(std::shared_ptr<const Kernel> kernel, const Tensor& x, const Tensor& y);

  const std::vector<double>& eigenvalues() const { return eigenvalues_; }  ///< ascending
  double largest_stable_step() const;  ///< 2 / largest eigenvalue: beyond it descent diverges

  /// Mean of f on the training rows -> [n, k]. Throws Error where the step size diverges, naming
  /// the largest that does not; so do the others.
  Tensor predict_training(const TrainingTime& time) const;

  /// Mean of f at x [m, d] -> [m, k]: Theta(x, X) Theta^-1 (I - exp(-rate Theta t)) y, or
  /// (I - step_size Theta)^steps in place of the exponential.
  Tensor predict(const Tensor& x, const TrainingTime& time) const;

  /// Covariance of f at x [m, d] over nets whose covariance at initialisation is `nngp` (Lee et al.
  /// 2019, arXiv 1902.06720, eq. 16, at any time) -> [m, m].
  Tensor ensemble_covariance(const Kernel& nngp, const Tensor& x, const TrainingTime& time) const;

 private:
  void check_stable(const TrainingTime& time) const;
  Tensor weights(const Tensor& coefficients, const TrainingTime& time, bool over) const;

  std::shared_ptr<const Kernel> kernel_;
  Tensor x_;
  std::shared_ptr<const Kernel::Points> points_;
  Tensor vectors_;  // [n, n], a row each
  std::vector<double> eigenvalues_;
  double negligible_ = 0;
  Tensor target_coefficients_;  // of y in the eigenvectors, [n, k], on the CPU
};

}  // namespace keel
