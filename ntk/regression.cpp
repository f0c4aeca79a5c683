#include "regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/diagonal_inverses.h"
#include "kernel_blocks.h"
#include "kernel_system.h"

namespace keel {
namespace {

using std::int64_t;

// Half of a CPU's memory is left to others; a GPU's is this process's, but for the work space of
// its libraries.
std::size_t room_to_keep(Device device) {
  const std::size_t available = available_memory(device);
  return device.is_cpu() ? available / 2 : available - available / 8;
}

std::size_t bytes_of(double count, std::size_t size) {
  const double bytes = count * static_cast<double>(size);
  return bytes < 0x1p62 ? static_cast<std::size_t>(bytes) : std::size_t{1} << 62;
}

void check_options(const RegressionOptions& options) {
  const auto& [absolute, relative] = options.ridge;
  check(absolute >= 0 && relative >= 0 && std::isfinite(absolute) && std::isfinite(relative),
        "regression", "got ridge {} and relative ridge {}, wanted finite values >= 0", absolute,
        relative);
  check(absolute == 0 || relative == 0, "regression",
        "got ridge {} and relative ridge {}, wanted at most one of them", absolute, relative);
  check(options.tolerance > 0 && std::isfinite(options.tolerance), "regression",
        "got tolerance {}, wanted a finite number > 0", options.tolerance);
  check(options.most_sweeps >= 2, "regression", "got {} sweeps, wanted at least 2",
        options.most_sweeps);
}

}  // namespace

MemoryPlan Regression::plan(const Kernel& kernel, int64_t rows, int64_t targets,
                            const RegressionOptions& options) {
  constexpr double kVectors = 50;  // of n x targets: those of the iteration, and partial products
  const double n = static_cast<double>(rows);
  MemoryPlan plan;
  plan.matrix = bytes_of(n * n, size_of(options.factor));
  plan.vectors = bytes_of(
      n * (static_cast<double>(kernel.input_width()) + kVectors * static_cast<double>(targets)) +
          n * static_cast<double>(block_rows(rows)),
      8);
  if (kernel.device().is_cuda())  // inverses of the factor's blocks, room to make them; products
    plan.vectors +=
        bytes_of(n * 1.25 * static_cast<double>(diagonal_block(rows)), size_of(options.factor)) +
        bytes_of(kernel.cheap_product() ? 0 : n * n / 80, 8);
  if (options.factor == DType::f64 || kernel.cheap_product()) return plan;
  const std::size_t kept = bytes_of(n * n, 8);
  if (plan.total() + kept <= room_to_keep(kernel.device())) plan.kept = kept;
  return plan;
}

Regression::Regression(std::shared_ptr<const Kernel> kernel, const Tensor& x, const Tensor& y,
                       RegressionOptions options)
    : kernel_(std::move(kernel)), tolerance_(options.tolerance) {
  check(kernel_ != nullptr, "regression", "got no kernel");
  check_options(options);
  check_training_data("regression", *kernel_, x, y);
  const Device device = kernel_->device();
  const MemoryPlan memory = plan(*kernel_, x.size(0), y.size(1), options);
  require_memory(device, memory.total(), "regression");
  x_ = x.clone();
  y_ = y.clone();
  points_ = kernel_->points(x_);
  system_ = std::make_unique<KernelSystem>(kernel_, points_, x_, options, memory.kept, report_);
  alpha_ = system_->solve(y_.to(Device::cpu()), options.tolerance, report_).to(device);
}

Regression::~Regression() = default;
Regression::Regression(Regression&&) noexcept = default;
Regression& Regression::operator=(Regression&&) noexcept = default;

std::vector<double> Regression::data_fit() const {
  const int64_t k = y_.size(1);
  const std::vector<double> y = y_.to_vector<double>(), alpha = alpha_.to_vector<double>();
  std::vector<double> fit(k, 0.0);
  for (std::size_t i = 0; i < y.size(); ++i) fit[i % k] += y[i] * alpha[i];
  return fit;
}

Tensor Regression::predict(const Tensor& x, const WorkProgress& progress) const {
  return kernel_times(*kernel_, x, *points_, alpha_, progress);
}

Tensor Regression::variance(const Tensor& x, const WorkProgress& progress) const {
  constexpr int64_t kBlock = 256;
  const int64_t n = system_->rows(), m = x.size(0), block = std::min(kBlock, block_rows(n));
  std::vector<double> variances;
  for (int64_t begin = 0; begin < m; begin += block) {
    const auto test = kernel_->points(x.slice(begin, std::min(m, begin + block)));
    const int64_t count = test->rows();
    const std::vector<double> prior = kernel_->diag(*test).to_vector<double>();
    const Tensor cross = Tensor::empty({n, count}, DType::f64, kernel_->device());
    kernel_->gram(*points_, *test, cross);
    const WorkProgress of_block = [&](double done) {
      progress((static_cast<double>(begin) + done * static_cast<double>(count)) /
               static_cast<double>(m));
    };
    const std::vector<double> explained =
        system_->quadratic_forms(cross.to(Device::cpu()), progress ? of_block : progress);
    if (progress) of_block(1);
    for (int64_t j = 0; j < count; ++j) variances.push_back(std::max(prior[j] - explained[j], 0.0));
  }
  return Tensor::from(variances, {m}, kernel_->device());
}

Tensor Regression::ensemble_covariance(const Kernel& nngp, const Tensor& x,
                                       const WorkProgress& progress) const {
  check<DeviceError>(nngp.device() == kernel_->device(), "regression",
                     "nngp is on {}, the kernel on {}: wanted one device", nngp.device(),
                     kernel_->device());
  const Tensor cross = Tensor::empty({system_->rows(), x.size(0)}, DType::f64, kernel_->device());
  kernel_->gram(*points_, *kernel_->points(x), cross);
  const Tensor weights =
      system_->solve_many(cross.to(Device::cpu()), tolerance_, progress).to(kernel_->device());
  return trained_covariance(nngp, x_, x, weights);
}

double Regression::smallest_eigenvalue() const { return system_->smallest_eigenvalue(); }

}  // namespace keel
