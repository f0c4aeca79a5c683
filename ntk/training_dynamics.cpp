#include "training_dynamics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/eigen.h"
#include "../kernels/gemm.h"
#include "kernel_blocks.h"

namespace keel {

using std::int64_t;

TrainingTime TrainingTime::flow(double t, double rate) {
  check(t >= 0 && rate > 0 && std::isfinite(rate), "training_dynamics",
        "got time {} and rate {}, wanted a time >= 0 and a rate > 0", t, rate);
  return {t * rate, 0, 0};
}

TrainingTime TrainingTime::descent(int64_t steps, double step_size) {
  check(steps >= 0 && step_size > 0 && std::isfinite(step_size), "training_dynamics",
        "got {} steps of size {}, wanted steps >= 0 and a size > 0", steps, step_size);
  return {0, steps, step_size};
}

// 1 - e^(-s) and 1 - (1 - s)^steps without the cancellation of small s.
double TrainingTime::gone(double eigenvalue) const {
  if (step_size_ == 0) return -std::expm1(-eigenvalue * time_);
  if (steps_ == 0) return 0;
  const double s = step_size_ * eigenvalue, steps = static_cast<double>(steps_);
  if (s < 1) return -std::expm1(steps * std::log1p(-s));
  const double left = std::pow(s - 1, steps);  // |1 - s|^steps
  return steps_ % 2 == 0 ? 1 - left : 1 + left;
}

TrainingDynamics::TrainingDynamics(std::shared_ptr<const Kernel> kernel, const Tensor& x,
                                   const Tensor& y)
    : kernel_(std::move(kernel)) {
  check(kernel_ != nullptr, "training_dynamics", "got no kernel");
  check_training_data("training_dynamics", *kernel_, x, y);
  const Device device = kernel_->device();
  const int64_t n = x.size(0);
  const double bytes = 32 * static_cast<double>(n) * static_cast<double>(n);
  require_memory(device, bytes < 0x1p62 ? static_cast<std::size_t>(bytes) : std::size_t{1} << 62,
                 "training_dynamics");
  x_ = x.clone();
  points_ = kernel_->points(x_);
  vectors_ = Tensor::empty({n, n}, DType::f64, device);
  kernel_->gram_lower(*points_, vectors_);
  eigenvalues_ = symmetric_eigen(vectors_).to_vector<double>();
  negligible_ = static_cast<double>(n) * std::numeric_limits<double>::epsilon() *
                std::max(eigenvalues_.back(), 0.0);
  const Tensor coefficients = Tensor::empty(y.shape(), DType::f64, device);
  gemm(Transpose::no, Transpose::no, 1, vectors_, y, 0, coefficients);
  target_coefficients_ = coefficients.to(Device::cpu());
}

double TrainingDynamics::largest_stable_step() const {
  const double largest = eigenvalues_.back();
  return largest > 0 ? 2 / largest : std::numeric_limits<double>::infinity();
}

void TrainingDynamics::check_stable(const TrainingTime& time) const {
  check(
      time.step_size() <= largest_stable_step(), "training_dynamics",
      "got a step size of {:.6g}, with which gradient descent diverges: wanted at most {:.6g}, 2 / "
      "the largest eigenvalue",
      time.step_size(), largest_stable_step());
}

/// vectors' (share . coefficients): back from eigenvectors, each with its share.
Tensor TrainingDynamics::weights(const Tensor& coefficients, const TrainingTime& time,
                                 bool over) const {
  check_stable(time);
  const int64_t k = coefficients.size(1);
  const Tensor scaled = coefficients.clone();
  for (int64_t i = 0; i < coefficients.size(0); ++i) {
    const double eigenvalue = eigenvalues_[i];
    double share = 0;
    if (eigenvalue > negligible_) share = over ? time.gone_over(eigenvalue) : time.gone(eigenvalue);
    for (int64_t j = 0; j < k; ++j) scaled.data<double>()[i * k + j] *= share;
  }
  const Tensor into = Tensor::empty(scaled.shape(), DType::f64, kernel_->device());
  gemm(Transpose::yes, Transpose::no, 1, vectors_, scaled.to(kernel_->device()), 0, into);
  return into;
}

Tensor TrainingDynamics::predict_training(const TrainingTime& time) const {
  return weights(target_coefficients_, time, false);
}

Tensor TrainingDynamics::predict(const Tensor& x, const TrainingTime& time) const {
  return kernel_times(*kernel_, x, *points_, weights(target_coefficients_, time, true));
}

Tensor TrainingDynamics::ensemble_covariance(const Kernel& nngp, const Tensor& x,
                                             const TrainingTime& time) const {
  check<DeviceError>(nngp.device() == kernel_->device(), "training_dynamics",
                     "nngp is on {}, the kernel on {}: wanted one device", nngp.device(),
                     kernel_->device());
  const Shape shape{x_.size(0), x.size(0)};
  const Tensor cross = Tensor::empty(shape, DType::f64, kernel_->device());
  kernel_->gram(*points_, *kernel_->points(x), cross);
  const Tensor coefficients = Tensor::empty(shape, DType::f64, kernel_->device());
  gemm(Transpose::no, Transpose::no, 1, vectors_, cross, 0, coefficients);
  return trained_covariance(nngp, x_, x, weights(coefficients.to(Device::cpu()), time, true));
}

}  // namespace keel
