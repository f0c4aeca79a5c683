// EmpiricalKernel: the neural tangent kernel of a net as it is, by its factored Jacobian.
#pragma once

#include <memory>
#include <mutex>

#include "jacobian.h"
#include "kernel.h"

namespace keel {

/// The trace-mode kernel (mean over outputs), and its mean over the members of an ensemble. Gram
/// matrices are computed in the dtype of the tensor they are written to; diagonals and products in
/// double. Points keep n x width numbers for each dtype that was asked of them.
class EmpiricalKernel : public Kernel {
 public:
  explicit EmpiricalKernel(Net net);
  /// Shares `net`, whose weights must stay as they are.
  explicit EmpiricalKernel(std::shared_ptr<const Net> net);

  const Net& net() const { return *net_; }

  std::int64_t input_width() const override { return net_->input_width(); }
  Device device() const override { return net_->flat().device(); }
  std::shared_ptr<const Points> points(const Tensor& x) const override;
  void gram(const Points& a, const Points& b, const Tensor& into,
            const WorkProgress& progress = {}) const override;
  void gram_lower(const Points& a, const Tensor& into,
                  const WorkProgress& progress = {}) const override;
  Tensor diag(const Points& a) const override;
  Tensor product(const Points& a, const Tensor& v) const override;
  bool cheap_product() const override { return true; }

  /// Theta(x, x) at x [n, input_width] float64 -> [n] float64, in blocks of rows.
  Tensor diagonal(const Tensor& x) const;

  /// Theta(x, x') -> [n, m] of `dtype`.
  Tensor matrix(const Tensor& x, const Tensor& x2, DType dtype = DType::f64) const;

 private:
  struct Inputs;
  const Net& net_of(DType dtype) const;
  const Jacobian& jacobian(const Points& points, DType dtype) const;
  void check_input(const Tensor& x) const;

  std::shared_ptr<const Net> net_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Net> twin_;  // the same weights in the other dtype
};

}  // namespace keel
