// The rooflines: a copy of more than caches hold, and matrix products; of each the fastest time, as
// nothing is faster than a roof.
#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "../kernels/cuda_libraries.cuh"
#include "../kernels/gemm.h"
#include "bench.h"

namespace keel::bench {
namespace {

double copy_rate(Device device, std::int64_t n) {
  const Tensor x = Tensor::zeros({n}, DType::f32, device);
  const Tensor into = Tensor::zeros({n}, DType::f32, device);
  const Timing time = measure(
      device, [&] { copy(into, x); }, 0.3);
  return 2.0 * sizeof(float) * static_cast<double>(n) / time.fastest;
}

double product_rate(std::int64_t m, double seconds) {
  return 2 * std::pow(static_cast<double>(m), 3) / seconds;
}

// As keel multiplies.
double gemm_rate(Device device, DType dtype, std::int64_t m) {
  const Tensor a = normal({m, m}, {1, 1}).to(dtype).to(device);
  const Tensor b = normal({m, m}, {1, 2}).to(dtype).to(device);
  const Tensor c = Tensor::empty({m, m}, dtype, device);
  const auto product = [&] { gemm(Transpose::no, Transpose::no, 1, a, b, 0, c); };
  return product_rate(m, measure(device, product, 0.3).fastest);
}

// Of float32 or TF32, as cuBLAS does it when nobody forbids it anything.
std::optional<double> cublas_rate([[maybe_unused]] Device device, [[maybe_unused]] std::int64_t m,
                                  [[maybe_unused]] bool tf32) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cpu()) return {};
  const Tensor a = normal({m, m}, {1, 1}).to(device), b = normal({m, m}, {1, 2}).to(device);
  const Tensor c = Tensor::empty({m, m}, DType::f32, device);
  const cublasHandle_t handle = cublas_handle(device, DType::f32);
  const int size = static_cast<int>(m);
  const float one = 1, zero = 0;
  const auto type = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const auto product = [&] {
    cublas_check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one,
                              b.data<float>(), CUDA_R_32F, size, a.data<float>(), CUDA_R_32F, size,
                              &zero, c.data<float>(), CUDA_R_32F, size, type, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  };
  // Everybody else's products are in pedantic mode; they set it again.
  cublas_check(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");
  return product_rate(m, measure(device, product, 0.3).fastest);
#else
  return {};
#endif
}

}  // namespace

Roofline measure_roofline(Device device, const Options& options) {
  const std::int64_t m = options.size(device.is_cuda() ? 8192 : 1536, 32);
  Roofline roofline;
  roofline.copy =
      copy_rate(device, options.size(std::int64_t{1} << (device.is_cuda() ? 28 : 26), 1000));
  trim_memory(device);
  roofline.own_float32 = gemm_rate(device, DType::f32, m);
  roofline.float32 = std::max(roofline.own_float32, cublas_rate(device, m, false).value_or(0));
  roofline.tf32 = cublas_rate(device, m, true);
  // A GPU made for graphics has a 64th of its float32 rate here.
  roofline.float64 = gemm_rate(device, DType::f64, device.is_cuda() ? m / 2 : m);
  trim_memory(device);
  return roofline;
}

}  // namespace keel::bench
