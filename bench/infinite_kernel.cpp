// Infinite-width NTK of n inputs, without and with Layer Norm, beside neural_tangents and its
// formulas in JAX.
#include "../ntk/infinite_kernel.h"

#include <cmath>

#include "../core/random.h"
#include "bench.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

constexpr double kNormEps = 1e-5;

// Theta of two hidden ReLU layers, sigma_w2 = 2 and sigma_b2 = 0.01, layer by layer in double.
double theta(const std::vector<double>& x, const std::vector<double>& y, bool layer_norm) {
  constexpr double pi = 3.14159265358979323846;
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return 2 * sum / static_cast<double>(a.size()) + 0.01;
  };
  double k = product(x, y), xx = product(x, x), yy = product(y, y), t = k;
  for (int layer = 0; layer < 2; ++layer) {
    if (layer_norm) {
      const double size = std::sqrt((xx + kNormEps) * (yy + kNormEps));
      k /= size;
      t /= size;
      xx /= xx + kNormEps;
      yy /= yy + kNormEps;
    }
    const double size = std::sqrt(xx * yy), angle = std::acos(std::clamp(k / size, -1.0, 1.0));
    k = (size * std::sin(angle) + (pi - angle) * k) / pi + 0.01;
    t = t * (pi - angle) / pi + k;
    xx += 0.01;
    yy += 0.01;
  }
  return t;
}

void bench_net(Report& report, Device device, std::int64_t n, bool layer_norm) {
  const char* spec = layer_norm ? "dense(128) layernorm(affine=0) relu dense(128) "
                                  "layernorm(affine=0) relu dense(1)"
                                : "dense(128) relu dense(128) relu dense(1)";
  const InfiniteKernel kernel(spec, kFeatures, {.device = device});
  const Tensor x = normal({n, kFeatures}, {1, 1}).to(DType::f64).to(device);
  const Tensor into = Tensor::empty({n, n}, DType::f32, device);
  const auto points = kernel.points(x);
  const auto verify = [&] {
    for (const auto& [i, j] :
         {std::pair{n - 1, n - 1}, {n - 1, n / 2}, {n / 2 + 1, std::int64_t{0}}}) {
      const double got = into[i].slice(j, j + 1).item();
      const double wanted = theta(x[i].to_vector<double>(), x[j].to_vector<double>(), layer_norm);
      check(std::abs(got - wanted) < 1e-5 * std::abs(wanted), "bench",
            "infinite_kernel gives {}, wanted {}", got, wanted);
    }
  };

  const auto pairs = static_cast<double>(n * n);
  const std::string what =
      fmt::format("infinite NTK {0} x {0}{1}", n, layer_norm ? ", LN every" : "");
  const auto note = [](double seconds, double entries) {
    return fmt::format("{:.2f} ns a pair", 1e9 * seconds / entries);
  };
  fill(into, 0);
  const Timing full = measure(
      device, [&] { kernel.gram(*kernel.points(x), *points, into); }, 1, 5);
  verify();
  report.add({what + ", full", full, 4 * pairs, 0, note(full.median, pairs)});

  fill(into, 0);
  const Timing lower = measure(
      device, [&] { kernel.gram_lower(*kernel.points(x), into); }, 1, 5);
  verify();
  const double half = (pairs + static_cast<double>(n)) / 2;
  report.add({what + ", lower triangle", lower, 4 * half, 0, note(lower.median, half)});
  report.later([&report, device, n, layer_norm, row = what + ", full"] {
    const std::string of = fmt::format("--n {}{}", n, layer_norm ? " --layernorm" : "");
    report.add_peers(row,
                     {peer_time("neural_tangents", device, "infinite_nt.py", of),
                      peer_time("jax", device, "infinite_jax.py", of),
                      peer_time("jax, float32", device, "infinite_jax.py", of + " --float32")});
  });
}

}  // namespace

void bench_infinite_kernel(Report& report, Device device, const Options& options) {
  const std::int64_t n = options.size(8192, 2048, 70);
  bench_net(report, device, n, false);
  bench_net(report, device, n, true);
}

}  // namespace keel::bench
