#include "empirical_kernel.h"

#include <algorithm>

namespace keel {

// Jacobians are made when first asked for: which dtype will be needed shows only then.
struct EmpiricalKernel::Inputs : Points {
  Inputs(const EmpiricalKernel* owner, Tensor x) : kernel(owner), x(std::move(x)) {}
  std::int64_t rows() const override { return x.size(0); }

  const EmpiricalKernel* kernel;
  Tensor x;  // [n, d] float64
  mutable std::mutex mutex;
  mutable std::unique_ptr<const Jacobian> jacobians[2];  // by dtype
};

EmpiricalKernel::EmpiricalKernel(Net net)
    : EmpiricalKernel(std::make_shared<const Net>(std::move(net))) {}

EmpiricalKernel::EmpiricalKernel(std::shared_ptr<const Net> net) : net_(std::move(net)) {
  check(net_ != nullptr, "empirical_kernel", "got no net");
  net_->check_rows_apart("empirical_kernel");
}

const Net& EmpiricalKernel::net_of(DType dtype) const {
  if (dtype == net_->flat().dtype()) return *net_;
  const std::lock_guard lock(mutex_);
  if (!twin_) twin_ = std::make_unique<Net>(net_->to(dtype));
  return *twin_;
}

const Jacobian& EmpiricalKernel::jacobian(const Points& points, DType dtype) const {
  const auto* inputs = dynamic_cast<const Inputs*>(&points);
  check(inputs != nullptr && inputs->kernel == this, "empirical_kernel",
        "got the points of another kernel, wanted this one's");
  const Net& net = net_of(dtype);
  const std::lock_guard lock(inputs->mutex);
  auto& kept = inputs->jacobians[dtype == DType::f64];
  if (!kept) kept = std::make_unique<const Jacobian>(net, inputs->x.to(dtype));
  return *kept;
}

void EmpiricalKernel::check_input(const Tensor& x) const {
  check<ShapeError>(x.rank() == 2 && x.size(1) == input_width() && x.dtype() == DType::f64,
                    "empirical_kernel", "got x {} {}, wanted [n, {}] float64", x.shape(),
                    name_of(x.dtype()), input_width());
  check<DeviceError>(x.device() == device(), "empirical_kernel", "got x on {}, the net is on {}",
                     x.device(), device());
}

std::shared_ptr<const Kernel::Points> EmpiricalKernel::points(const Tensor& x) const {
  check_input(x);
  return std::make_shared<Inputs>(this, x.clone());
}

void EmpiricalKernel::gram(const Points& a, const Points& b, const Tensor& into,
                           const WorkProgress& progress) const {
  jacobian(a, into.dtype()).gram_into(jacobian(b, into.dtype()), into, progress);
}

void EmpiricalKernel::gram_lower(const Points& a, const Tensor& into,
                                 const WorkProgress& progress) const {
  jacobian(a, into.dtype()).gram_lower_into(into, progress);
}

Tensor EmpiricalKernel::diag(const Points& a) const { return jacobian(a, DType::f64).diag(true); }

Tensor EmpiricalKernel::product(const Points& a, const Tensor& v) const {
  return jacobian(a, DType::f64).product(v);
}

Tensor EmpiricalKernel::diagonal(const Tensor& x) const {
  check_input(x);
  // About 16 MiB a layer, as Net::predict.
  const std::int64_t wide = net_->members() * net_->widest() * net_->output_width();
  const std::int64_t n = x.size(0), block = std::max<std::int64_t>(1, (1 << 21) / wide);
  const Net& net = net_of(DType::f64);
  const Tensor out = Tensor::empty({n}, DType::f64, device());
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    copy(out.slice(begin, end), Jacobian(net, x.slice(begin, end)).diag(true));
  }
  return out;
}

Tensor EmpiricalKernel::matrix(const Tensor& x, const Tensor& x2, DType dtype) const {
  const Tensor into = Tensor::empty({x.size(0), x2.size(0)}, dtype, device());
  gram(*points(x), *points(x2), into);
  return into;
}

}  // namespace keel
