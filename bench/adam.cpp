// One Adam update of a flat tensor: four arrays read, three written.
#include "../kernels/adam.h"

#include <cmath>

#include "../core/random.h"
#include "bench.h"
#include "peer.h"

namespace keel::bench {
namespace {

// The first two steps of some parameters by algorithm 1 of the paper, in double.
void verify(Device device) {
  const Tensor start = normal({1000}, {1, 1}), host_gradients = normal({1000}, {1, 2});
  const Tensor parameters = start.clone().to(device), gradients = host_gradients.to(device);
  AdamState state(parameters);
  for (int step = 0; step < 2; ++step) adam(parameters, gradients, state);
  const std::vector<double> got = parameters.to_vector<double>(), p = start.to_vector<double>(),
                            g = host_gradients.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    // The same gradient twice: both corrected moments are its own.
    const double wanted = p[i] - 2 * 1e-3 * g[i] / (std::abs(g[i]) + 1e-8);
    check(std::abs(got[i] - wanted) < 1e-6 * (1 + std::abs(wanted)), "bench",
          "adam gives {}, wanted {}", got[i], wanted);
  }
}

std::string row_name(std::int64_t n, Device device) {
  return fmt::format("adam, {} parameters{}", n, on_threads(device));
}

void bench_size(Report& report, Device device, std::int64_t n) {
  const Tensor parameters = Tensor::zeros({n}, DType::f32, device);
  const Tensor gradients = Tensor::full({n}, 0.5, DType::f32, device);
  AdamState state(parameters);
  const auto step = [&] { adam(parameters, gradients, state); };
  report.add({.name = row_name(n, device),
              .time = measure(device, step),
              .bytes = 7 * sizeof(float) * static_cast<double>(n),
              .gpu_seconds = by_clock_of_gpu(device, step)});
}

}  // namespace

void bench_adam(Report& report, Device device, const Options& options) {
  verify(device);
  std::vector<std::int64_t> sizes = {17921, 1 << 20, 1 << 24};  // the first: a net of 2 x 128 units
  if (options.quick) sizes.pop_back();
  if (options.rehearse) sizes = {17921};
  for (const int threads : thread_choices(device)) {
    const ThreadLimit limit(threads);
    for (const std::int64_t n : sizes) bench_size(report, device, n);
    report.later([&report, device, sizes] {
      const PeerOutput peer =
          run_peer(device, "adam_torch.py", fmt::format("--sizes {}", fmt::join(sizes, ",")));
      for (const std::int64_t n : sizes)
        report.add_peers(row_name(n, device),
                         {peer_time("PyTorch, fused", peer, 1, fmt::format("cases/{}", n))});
    });
  }
}

}  // namespace keel::bench
