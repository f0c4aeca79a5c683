// LayerNorm, fused with relu and not, forward and backward, against a copy of the same bytes.
#include <cmath>
#include <cstring>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "../core/random.h"
#include "../keel.h"
#include "bench.h"

namespace keel::bench {
namespace {

constexpr double kFloat = sizeof(float);

// A copy of x: memcpy on the CPU, the driver's copy on a GPU.
Timing copy_time(Device device, const Tensor& into, const Tensor& x) {
  return measure(device, [&] { copy(into, x); });
}

// One entry of the result, by the definition, in double: a wrong kernel is not worth timing.
void verify(const Tensor& x, const Tensor& out) {
  const std::vector<double> row = x[x.size(0) - 1].to_vector<double>();
  const double got = out[out.size(0) - 1].to_vector<double>()[1];
  double mean = 0, variance = 0;
  for (double v : row) mean += v / static_cast<double>(row.size());
  for (double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
  const double wanted = std::max(0.0, (row[1] - mean) / std::sqrt(variance + 1e-5));
  check(std::abs(got - wanted) < 1e-4, "bench", "layer_norm_relu gives {}, wanted {}", got, wanted);
}

void bench_shape(Report& report, Device device, std::int64_t rows, std::int64_t cols,
                 const char* how) {
  const Tensor x = normal({rows, cols}, {1, 1}).to(device);
  const Tensor d_out = normal({rows, cols}, {1, 2}).to(device);
  const Tensor gain = Tensor::full({cols}, 1, DType::f32, device);
  const Tensor bias = Tensor::zeros({cols}, DType::f32, device);
  verify(x, layer_norm_relu(x, gain, bias).value());

  const double bytes = 2 * kFloat * static_cast<double>(rows * cols);
  const std::string shape = fmt::format("{} x {}{}", rows, cols, how);
  const Timing copied = copy_time(device, Tensor::empty(x.shape(), DType::f32, device), x);
  report.add({"copy " + shape, copied, bytes});
  const auto against_copy = [&](const Timing& time, double share) {
    return fmt::format("{:.2f} x the copy of its bytes", time.median / (share * copied.median));
  };
  const Timing plain = measure(device, [&] { layer_norm(x, gain, bias); });
  report.add({"layer_norm forward " + shape, plain, bytes, 0, against_copy(plain, 1)});
  const Timing fused = measure(device, [&] { layer_norm_relu(x, gain, bias); });
  report.add({"layer_norm_relu forward " + shape, fused, bytes, 0, against_copy(fused, 1)});

  Tape tape;
  const Var vx = tape.leaf(x), vg = tape.leaf(gain), vb = tape.leaf(bias);
  const Var out = layer_norm_relu(vx, vg, vb);
  // Reads x and d_out, writes d_x; handing d_x out as a leaf's derivative copies it once more,
  // which a net does not pay: its inner x are no leaves.
  GradientSink gradients;
  const Timing backward = measure(device, [&] { tape.backward(out, d_out, gradients); });
  report.add(
      {"layer_norm_relu backward " + shape, backward, 2.5 * bytes, 0, against_copy(backward, 2.5)});
}

}  // namespace

void bench_layer_norm(Report& report, Device device) {
  if (device.is_cuda()) {
    for (auto [rows, cols] :
         {std::pair(100, 128), {65536, 128}, {1 << 20, 128}, {8192, 768}, {8192, 4096}})
      bench_shape(report, device, rows, cols, "");
    return;
  }
#ifdef _OPENMP
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
#endif
  bench_shape(report, device, 4096, 768, ", 1 thread");
  bench_shape(report, device, 65536, 128, ", 1 thread");
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  bench_shape(report, device, 4096, 768, "");
}

Roofline measure_roofline(Device device) {
  // Four times what caches hold, so that the copy is one of memory.
  const std::int64_t n = device.is_cuda() ? std::int64_t{1} << 28 : std::int64_t{1} << 26;
  Roofline roofline;
  {
    const Tensor x = Tensor::zeros({n}, DType::f32, device);
    const Tensor into = Tensor::zeros({n}, DType::f32, device);
    roofline.copy = 2 * kFloat * static_cast<double>(n) /
                    measure(
                        device, [&] { copy(into, x); }, 0.3)
                        .median;
  }
  trim_memory(device);
  const std::int64_t m = device.is_cuda() ? 8192 : 1536;
  const Tensor a = normal({m, m}, {1, 1}).to(device), b = normal({m, m}, {1, 2}).to(device);
  const Tensor c = Tensor::empty({m, m}, DType::f32, device);
  const auto product = [&] { gemm(Transpose::no, Transpose::no, 1, a, b, 0, c); };
  roofline.gemm = 2 * std::pow(static_cast<double>(m), 3) / measure(device, product, 0.3).median;
  return roofline;
}

}  // namespace keel::bench
