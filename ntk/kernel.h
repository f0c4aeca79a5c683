// Kernel: a positive semi-definite function of two inputs. Regression and the certificate know no
// more of a net than this; InfiniteKernel and EmpiricalKernel are the two there are.
#pragma once

#include <cstdint>
#include <memory>

#include "../core/tensor.h"
#include "../core/work_progress.h"

namespace keel {

class Kernel {
 public:
  /// n inputs with whatever the kernel keeps of each: every layer's diagonals, or the factors of
  /// their Jacobian. Made by points() of the kernel that is asked about them, and by no other.
  class Points {
   public:
    virtual ~Points() = default;
    virtual std::int64_t rows() const = 0;
  };

  virtual ~Kernel() = default;
  virtual std::int64_t input_width() const = 0;
  virtual Device device() const = 0;

  /// Of a copy of x [n, input_width], float64 on device(). Throws ShapeError or DeviceError.
  virtual std::shared_ptr<const Points> points(const Tensor& x) const = 0;

  /// Theta(a, b) -> into [n, m], float32 or float64, every entry written. Only a CPU tells of
  /// progress: a GPU is handed everything at once.
  virtual void gram(const Points& a, const Points& b, const Tensor& into,
                    const WorkProgress& progress = {}) const = 0;

  /// Theta(a, a) -> into [n, n]: entries i >= j are written, those above the diagonal are left
  /// alone.
  virtual void gram_lower(const Points& a, const Tensor& into,
                          const WorkProgress& progress = {}) const = 0;

  /// Theta(x, x) of each point -> [n] float64.
  virtual Tensor diag(const Points& a) const = 0;

  /// Theta(a, a) v for v [n, k] float64 -> [n, k] float64, in double arithmetic throughout and
  /// without an [n, n] array: what residuals are made of.
  virtual Tensor product(const Points& a, const Tensor& v) const = 0;

  /// What its arithmetic may err by: in Theta(x, x') of two of the points this times
  /// sqrt(Theta(x, x) Theta(x', x')). An estimate with room, of ordinary roundings.
  virtual double rounding(const Points& /*of*/) const { return 1e-13; }

  /// product() costs O(n), not O(n^2): whoever solves with Theta keeps no copy of it.
  virtual bool cheap_product() const { return false; }
};

}  // namespace keel
