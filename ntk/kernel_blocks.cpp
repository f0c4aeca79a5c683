#include "kernel_blocks.h"

#include <algorithm>
#include <cmath>

#include "../kernels/gemm.h"

namespace keel {
namespace {

using std::int64_t;

void check_finite(const char* tag, const char* name, const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      fail(tag, "{} is {} in row {} (from 0)", name, values[i],
           static_cast<int64_t>(i) / x.size(1));
}

}  // namespace

void check_training_data(const char* tag, const Kernel& kernel, const Tensor& x, const Tensor& y) {
  check_same_kind(tag, "x", x, "y", y);
  check<ShapeError>(x.dtype() == DType::f64, tag, "got float32 data, wanted float64");
  check<DeviceError>(x.device() == kernel.device(), tag,
                     "x is on {}, the kernel on {}: wanted one device", x.device(),
                     kernel.device());
  check<ShapeError>(x.rank() == 2 && x.size(1) == kernel.input_width(), tag,
                    "got x {}, wanted [n, {}]", x.shape(), kernel.input_width());
  check<ShapeError>(y.rank() == 2 && y.size(0) == x.size(0) && y.size(1) > 0, tag,
                    "got y {}, wanted [{}, targets]", y.shape(), x.size(0));
  check(x.size(0) > 0, tag, "got no rows, wanted at least one");
  check_finite(tag, "x", x);
  check_finite(tag, "y", y);
  constexpr double kLargest = 1e150;  // sums of squares must be finite
  const std::vector<double> targets = y.to_vector<double>();
  for (std::size_t i = 0; i < targets.size(); ++i)
    check(std::abs(targets[i]) <= kLargest, tag,
          "got y = {} in row {} (from 0), wanted at most {:g} in size: scale it", targets[i],
          static_cast<int64_t>(i) / y.size(1), kLargest);
  constexpr double kSmallest = 1e-100;  // and those of small residuals not 0
  for (int64_t j = 0; j < y.size(1); ++j) {
    double largest = 0;
    for (int64_t i = 0; i < y.size(0); ++i)
      largest = std::max(largest, std::abs(targets[static_cast<std::size_t>(i * y.size(1) + j)]));
    check(largest == 0 || largest >= kSmallest, tag,
          "got y of at most {:g} in size, wanted 0 or {:g} at the least: scale it", largest,
          kSmallest);
  }
}

int64_t block_rows(int64_t points) {
  constexpr int64_t kEntries = int64_t{1} << 23;  // 64 MiB
  return std::clamp<int64_t>(kEntries / std::max<int64_t>(points, 1), 16, 1024);
}

Tensor kernel_times(const Kernel& kernel, const Tensor& x, const Kernel::Points& points,
                    const Tensor& weights, const WorkProgress& progress) {
  const int64_t m = x.size(0), block = block_rows(points.rows());
  const Tensor into = Tensor::empty({m, weights.size(1)}, DType::f64, kernel.device());
  for (int64_t begin = 0; begin < m; begin += block) {
    const int64_t end = std::min(m, begin + block);
    const Tensor tile = Tensor::empty({end - begin, points.rows()}, DType::f64, kernel.device());
    kernel.gram(*kernel.points(x.slice(begin, end)), points, tile);
    gemm(Transpose::no, Transpose::no, 1, tile, weights, 0, into.slice(begin, end));
    if (progress) progress(static_cast<double>(end) / static_cast<double>(m));
  }
  return into;
}

Tensor trained_covariance(const Kernel& nngp, const Tensor& x_train, const Tensor& x,
                          const Tensor& weights) {
  const auto train = nngp.points(x_train), test = nngp.points(x);
  const int64_t n = x_train.size(0), m = x.size(0);
  const Device device = nngp.device();
  const Tensor covariance = Tensor::empty({m, m}, DType::f64, device);
  nngp.gram(*test, *test, covariance);
  const Tensor cross = Tensor::empty({n, m}, DType::f64, device);
  nngp.gram(*train, *test, cross);
  gemm(Transpose::yes, Transpose::no, 1, weights, nngp.product(*train, weights), 1, covariance);
  gemm(Transpose::yes, Transpose::no, -1, weights, cross, 1, covariance);
  gemm(Transpose::yes, Transpose::no, -1, cross, weights, 1, covariance);
  std::vector<double> values = covariance.to_vector<double>();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < i; ++j)
      values[i * m + j] = values[j * m + i] = (values[i * m + j] + values[j * m + i]) / 2;
    values[i * m + i] = std::max(values[i * m + i], 0.0);
  }
  return Tensor::from(values, {m, m}, device);
}

}  // namespace keel
