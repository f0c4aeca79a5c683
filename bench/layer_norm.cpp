// LayerNorm and RMSNorm, plain and fused with relu, forward and backward, against a copy and
// PyTorch.
#include <algorithm>
#include <cmath>

#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "memory_rows.h"
#include "peer.h"

namespace keel::bench {
namespace {

struct Size {
  std::int64_t rows, cols;
  std::string str(const char* by) const { return fmt::format("{}{}{}", rows, by, cols); }
};

constexpr double kEps = 1e-5;
constexpr std::int64_t kRmsCols = 768;  // as RMS_COLS of the peers' script

struct Case {
  bool centred, relu;  // not centred: RMSNorm
  Var operator()(const Var& x, const Var& gain, const Var& bias) const {
    if (!centred) return relu ? rms_norm_relu(x, gain, kEps) : rms_norm(x, gain, kEps);
    return relu ? layer_norm_relu(x, gain, bias, kEps) : layer_norm(x, gain, bias, kEps);
  }
  const char* name() const {
    if (!centred) return relu ? "rms_norm_relu" : "rms_norm";
    return relu ? "layer_norm_relu" : "layer_norm";
  }
};

// One size tells whether what is not centred goes the same way.
std::vector<Case> cases_of(const Size& size) {
  std::vector<Case> cases = {{true, false}, {true, true}};
  if (size.cols == kRmsCols) cases.insert(cases.end(), {{false, false}, {false, true}});
  return cases;
}

// The last row by the definition, in double, gain 1 and bias 0: a wrong kernel is not worth timing.
struct Reference {
  std::vector<double> out, d_x;
};

Reference reference(const std::vector<double>& x, std::vector<double> d, const Case& norm) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0, d_sum = 0, d_product = 0;
  for (double v : x) mean += norm.centred ? v / n : 0;
  for (double v : x) variance += (v - mean) * (v - mean) / n;
  const double scale = 1 / std::sqrt(variance + kEps);
  Reference result;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double xhat = (x[j] - mean) * scale;
    if (norm.relu && xhat <= 0) d[j] = 0;
    result.out.push_back(norm.relu ? std::max(0.0, xhat) : xhat);
    d_sum += norm.centred ? d[j] / n : 0;
    d_product += d[j] * xhat / n;
  }
  for (std::size_t j = 0; j < x.size(); ++j)
    result.d_x.push_back(scale * (d[j] - d_sum - (x[j] - mean) * scale * d_product));
  return result;
}

void verify(const Case& norm, const Tensor& x, const Tensor& d_out, const Tensor& gain,
            const Tensor& bias) {
  Tape tape;
  GradientSink gradients;
  const Var leaf = tape.leaf(x);
  const Var out = norm(leaf, tape.leaf(gain), tape.leaf(bias));
  tape.backward(out, d_out, gradients);
  const std::int64_t last = x.size(0) - 1;
  const auto row = [&](const Tensor& t) { return t[last].to_vector<double>(); };
  const Reference wanted = reference(row(x), row(d_out), norm);
  const std::vector<double> got = row(out.value()), d_got = row(gradients[leaf]);
  for (std::size_t j = 0; j < got.size(); ++j) {
    check(std::abs(got[j] - wanted.out[j]) < 1e-4, "bench", "{} gives {}, wanted {}", norm.name(),
          got[j], wanted.out[j]);
    check(std::abs(d_got[j] - wanted.d_x[j]) < 1e-4, "bench", "{} backward gives {}, wanted {}",
          norm.name(), d_got[j], wanted.d_x[j]);
  }
}

std::string row_name(const std::string& what, const Size& size, Device device) {
  return what + " " + size.str(" x ") + on_threads(device);
}

void bench_size(Report& report, Device device, const Size& size) {
  const Shape shape{size.rows, size.cols};
  const Tensor x = normal(shape, {1, 1}).to(device), d_out = normal(shape, {1, 2}).to(device);
  const Tensor gain = Tensor::full({size.cols}, 1, DType::f32, device);
  const Tensor bias = Tensor::zeros({size.cols}, DType::f32, device);
  MemoryRows rows(report, x);
  report.add({row_name("copy", size, device), rows.copied(), 2 * rows.bytes()});
  for (const Case& norm : cases_of(size)) {
    verify(norm, x, d_out, gain, bias);
    const std::string name = norm.name();
    rows.add(row_name(name + " forward", size, device), 2, [&] { norm(x, gain, bias); });
    Tape tape;
    const Var vx = tape.leaf(x), vg = tape.leaf(gain), vb = tape.leaf(bias);
    const Var out = norm(vx, vg, vb);
    DropInput gradients(vx);
    // Reads x and d_out, writes d_x.
    rows.add(row_name(name + " backward", size, device), 3,
             [&] { tape.backward(out, d_out, gradients); });
  }
}

// A run of each for all sizes; the report has one before the next begins. The largest go first: far
// beyond any cache they are what the goals are about, and a peer may be cut off.
void bench_peers(Report& report, Device device, const std::vector<Size>& sizes) {
  std::vector<Size> ordered = sizes;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Size& a, const Size& b) { return a.rows * a.cols > b.rows * b.cols; });
  std::string shapes;
  for (const Size& size : ordered) shapes += (shapes.empty() ? "" : ",") + size.str("x");
  const auto add = [&](const char* name, const char* peer) {
    const PeerOutput output =
        run_peer(device, "layer_norm_torch.py", fmt::format("--peer {} --shapes {}", peer, shapes));
    for (const Size& size : sizes)
      for (const Case& norm : cases_of(size))
        for (const char* pass : {" forward", " backward"}) {
          if (!norm.centred && std::string_view(peer) == "triton") continue;
          const std::string what = norm.name() + std::string(pass);
          report.add_peers(
              row_name(what, size, device),
              {peer_time(name, output, 1, fmt::format("cases/{} {}", what, size.str("x")))});
        }
  };
  add("PyTorch", "eager");
  if (device.is_cuda()) add("Triton", "triton");
  add("torch.compile", "compile");
}

}  // namespace

void bench_layer_norm(Report& report, Device device, const Options& options) {
  std::vector<Size> sizes = {{100, 128}, {65536, 128}, {8192, 768}, {8192, 4096}};
  if (options.quick) sizes = {{100, 128}, {4096, 128}};
  if (options.rehearse) sizes = {{20, 128}, {3, 768}, {2, 4096}};
  const Size largest{1 << 20, 128};
  if (device.is_cuda() && !options.quick && !options.rehearse) {
    // Larger than the L2 at every width; two whose rows are no whole runs of sixteen bytes or no
    // power of two, and two little wider than what a smaller group of threads has (launch.cuh).
    for (const Size& size : {Size{524288, 64},
                             {131072, 256},
                             {131072, 288},
                             {32768, 1024},
                             {32768, 1280},
                             {16384, 2048},
                             {40000, 1000},
                             {40001, 769},
                             largest})
      sizes.push_back(size);
  } else {
    report.leave_out("layer_norm " + largest.str(" x "),
                     device.is_cuda() ? "a smaller run" : "takes too long on a CPU");
  }
  for (const int threads : thread_choices(device)) {
    const ThreadLimit limit(threads);
    for (const Size& size : sizes) bench_size(report, device, size);
    report.later([&report, device, sizes] { bench_peers(report, device, sizes); });
  }
}

}  // namespace keel::bench
