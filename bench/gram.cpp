// Empirical NTK of finite nets by factored Jacobians: 4096 inputs of a small net, the net of
// neural_tangents' notebook, and (--large) all 40,132 training rows of the protein data.
#include <cmath>

#include "../core/random.h"
#include "../kernels/factor_gram.h"
#include "../nn/net.h"
#include "../ntk/jacobian.h"
#include "bench.h"
#include "peer.h"

namespace keel::bench {
namespace {

constexpr const char* kSmall = "dense(128) relu dense(128) relu dense(1)";
// Of kSmall at 9 features: products of the inputs of each layer, and of its cotangents.
constexpr double kFlopAnEntry = 2 * (9 + 128 + 128) + 2 * (128 + 128);

// What each dense layer of a ReLU net saw at one input, and the derivatives of output o by what it
// gave, in double.
struct Trace {
  std::vector<std::vector<double>> inputs, cotangents;
};

Trace trace(const Net& net, const Tensor& x, std::int64_t row, std::int64_t o) {
  std::vector<std::vector<double>> weights, biases;
  for (std::size_t p = 0; p < net.layout().entries().size(); p += 2) {
    weights.push_back(net.layout().member_view(net.flat(), p, 0).to_vector<double>());
    biases.push_back(net.layout().member_view(net.flat(), p + 1, 0).to_vector<double>());
  }
  Trace result;
  std::vector<double> a = x.slice(row, row + 1).to_vector<double>();
  for (std::size_t l = 0; l < weights.size(); ++l) {
    result.inputs.push_back(a);
    std::vector<double> z = biases[l];
    for (std::size_t i = 0; i < z.size(); ++i)
      for (std::size_t j = 0; j < a.size(); ++j) z[i] += weights[l][i * a.size() + j] * a[j];
    for (double& v : z) v = std::max(v, 0.0);
    a = z;
  }
  std::vector<double> d(a.size());
  d[o] = 1;
  for (std::size_t l = weights.size(); l-- > 0;) {
    result.cotangents.insert(result.cotangents.begin(), d);
    const std::vector<double>& input = result.inputs[l];
    std::vector<double> d_input(input.size());
    for (std::size_t i = 0; i < d.size(); ++i)
      for (std::size_t j = 0; j < input.size(); ++j)
        if (input[j] > 0) d_input[j] += weights[l][i * input.size() + j] * d[i];
    d = d_input;
  }
  return result;
}

// By the definition: the sum over every weight and bias of one derivative times the other.
double theta(const Trace& a, const Trace& b) {
  double sum = 0;
  for (std::size_t l = 0; l < a.inputs.size(); ++l)
    for (std::size_t i = 0; i < a.cotangents[l].size(); ++i) {
      sum += a.cotangents[l][i] * b.cotangents[l][i];
      for (std::size_t j = 0; j < a.inputs[l].size(); ++j)
        sum += (a.cotangents[l][i] * a.inputs[l][j]) * (b.cotangents[l][i] * b.inputs[l][j]);
    }
  return sum;
}

void verify(double got, const Trace& a, const Trace& b) {
  const double wanted = theta(a, b), size = std::sqrt(theta(a, a) * theta(b, b));
  check(std::abs(got - wanted) < 1e-5 * size, "bench", "an entry of Theta is {}, wanted {} +- {}",
        got, wanted, 1e-5 * size);
}

double entry(const Tensor& gram, std::int64_t k, std::int64_t l) {
  return gram[k].slice(l, l + 1).item();
}

// By 3xTF32 a float32 product may pass the roof it is held against, a float32 GEMM: no error. What
// bounds it then is three products of TF32 each.
std::string product_note(const Report& report, Device device, double flop, const Timing& time) {
  if (gram_product(device) == GramProduct::fma) return "";
  const double third = report.roofline().tf32.value() / 3;
  return fmt::format("3xTF32, whose roof is not gemm_float32: {:.0f}% of a third of gemm_tf32",
                     100 * flop / time.median / third);
}

// Of peers that take seconds on a CPU, and milliseconds on a GPU.
std::string repeats_of_slow(Device device) {
  return device.is_cuda() ? "--repeats 7" : "--repeats 1";
}

struct Peer {
  const char *name, *script;
  std::string arguments;
  double scale = 1;  // our work over theirs
};

// Each by itself: the report has one before the next begins.
void bench_peers(Report& report, Device device, const std::string& row, const char* which,
                 const std::vector<Peer>& peers) {
  for (const Peer& peer : peers)
    report.later([&report, device, row, which, peer] {
      report.add_peers(row,
                       {peer_time(peer.name, device, peer.script,
                                  fmt::format("--case {} {}", which, peer.arguments), peer.scale)});
    });
}

void bench_small(Report& report, Device device, std::int64_t n) {
  const Net net(kSmall, 9, {.device = device});
  const Tensor x = normal({n, 9}, {1, 1}).to(device);
  const Tensor gram = Jacobian(net, x).gram(), lower = Jacobian(net, x).gram_lower();
  for (const auto& [k, l] :
       {std::pair{n - 1, n - 1}, {n - 1, n / 2}, {n / 2 + 1, std::int64_t{0}}}) {
    const Trace a = trace(net, x, k, 0), b = trace(net, x, l, 0);
    verify(entry(gram, k, l), a, b);
    verify(entry(gram, l, k), a, b);
    verify(entry(lower, k, l), a, b);
  }

  const auto entries = static_cast<double>(n * n);
  // Of the lower triangle: a full matrix is that one, mirrored.
  const double flop = kFlopAnEntry * (entries + static_cast<double>(n)) / 2;
  const Timing full = measure(
      device, [&] { Jacobian(net, x).gram(); }, 1, 5);
  // The slow ones at fewer inputs: once contraction outweighs the Jacobians, work grows as n^2.
  const std::int64_t fewer = std::min<std::int64_t>(n, 1024);
  const double scale = entries / static_cast<double>(fewer * fewer);
  const std::string all = fmt::format("--n {} ", n), some = fmt::format("--n {} ", fewer);
  const std::string row = fmt::format("empirical NTK {0} x {0}, full", n);
  report.add({row, full, 4 * entries, flop, product_note(report, device, flop, full)});
  bench_peers(report, device, row, "small",
              {{"torch.func Jacobian contraction", "gram_torch.py", all + repeats_of_slow(device)},
               {"neural_tangents structured derivatives", "gram_nt.py", all + "--batch 256"},
               {"its Jacobian contraction", "gram_nt.py",
                some + "--implementation JACOBIAN_CONTRACTION", scale},
               {"its NTK-vector products", "gram_nt.py",
                some + "--batch 128 --repeats 1 --implementation NTK_VECTOR_PRODUCTS", scale}});
  const Tensor into = Tensor::empty({n, n}, DType::f32, device);
  const Timing half = measure(
      device, [&] { Jacobian(net, x).gram_lower_into(into); }, 1, 5);
  report.add({fmt::format("empirical NTK {0} x {0}, lower triangle", n), half, 2 * entries, flop,
              product_note(report, device, flop, half)});

  const Net wide_net(kSmall, 9, {.dtype = DType::f64, .device = device});
  const Tensor wide_x = x.to(DType::f64), wide_into = Tensor::empty({n, n}, DType::f64, device);
  const Timing doubles = measure(
      device, [&] { Jacobian(wide_net, wide_x).gram_lower_into(wide_into); }, 1, 5);
  verify(entry(wide_into, n - 1, n / 2), trace(wide_net, wide_x, n - 1, 0),
         trace(wide_net, wide_x, n / 2, 0));
  report.add({fmt::format("empirical NTK {0} x {0}, lower triangle, float64", n),
              doubles,
              4 * entries,
              flop,
              "",
              {},
              Roof::float64});
}

void bench_wide(Report& report, Device device, std::int64_t width) {
  const std::int64_t n = 16, features = 3 * width / 2, outputs = 8;
  const std::string spec =
      fmt::format("dense({0}) relu dense({0}) relu dense({0}) relu dense(8)", width);
  const Net net(spec, features, {.device = device});
  const Tensor x1 = normal({n, features}, {1, 1}).to(device);
  const Tensor x2 = normal({n, features}, {1, 2}).to(device);
  const auto gram = [&] { return Jacobian(net, x1).gram(Jacobian(net, x2), OutputMode::full); };
  const Tensor result = gram();
  for (const auto& [o, p] : {std::pair{0, 0}, {7, 7}, {2, 5}})
    verify(entry(result[n - 1][3], o, p), trace(net, x1, n - 1, o), trace(net, x2, 3, p));

  const Timing time = measure(device, gram);
  // Forward once and backward once an output, the first layer without d_x.
  const auto weights = static_cast<double>(net.parameters_per_member());
  const auto first = static_cast<double>(features * width);
  const double flop = 2.0 * 2 * n * (weights + outputs * (weights - first));
  const std::string row = fmt::format("empirical NTK 16 x 16 x 8 x 8, 3 x {} units", width);
  report.add({row, time, 4 * weights, flop});
  bench_peers(report, device, row, "wide",
              {{"torch.func Jacobian contraction", "gram_torch.py", repeats_of_slow(device)},
               {"neural_tangents structured derivatives", "gram_nt.py", ""},
               {"its NTK-vector products", "gram_nt.py",
                "--batch 4 --repeats 1 --implementation NTK_VECTOR_PRODUCTS"}});
}

void bench_large(Report& report, Device device, std::int64_t n) {
  const auto entries = static_cast<double>(n) * static_cast<double>(n);
  const auto needed = static_cast<std::size_t>(1.1 * 4 * entries);
  if (const std::size_t free = free_memory(device); free < needed) {
    report.leave_out(
        fmt::format("empirical NTK of {} inputs", n),
        fmt::format("{:.1f} GB needed, {:.1f} GB free", static_cast<double>(needed) / 1e9,
                    static_cast<double>(free) / 1e9));
    return;
  }
  trim_memory(device);
  reset_peak(device);
  const Net net(kSmall, 9, {.device = device});
  const Tensor x = normal({n, 9}, {1, 1}).to(device);
  const Tensor into = Tensor::empty({n, n}, DType::f32, device);
  const Timing time = measure(
      device, [&] { Jacobian(net, x).gram_lower_into(into); }, 0, 3);
  const double peak = static_cast<double>(memory_stats(device).peak_in_use) / (4 * entries);
  for (const auto& [k, l] : {std::pair{n - 1, n - 1}, {n - 1, n / 3}, {n / 2 + 1, std::int64_t{0}}})
    verify(entry(into, k, l), trace(net, x, k, 0), trace(net, x, l, 0));
  const double flop = kFlopAnEntry * (entries + static_cast<double>(n)) / 2;
  const std::string product = product_note(report, device, flop, time);
  const std::string row = fmt::format("empirical NTK {0} x {0}, lower triangle", n);
  report.add({row, time, 2 * entries, flop,
              fmt::format("all tensors at their peak {:.3f} x the matrix{}{}", peak,
                          product.empty() ? "" : "; ", product)});
  // 3 GB of Jacobians and 58 Tflop: minutes of a CPU.
  if (device.is_cuda())
    bench_peers(report, device, row, "small",
                {{"torch.func Jacobian contraction, full", "gram_torch.py",
                  fmt::format("--n {} --repeats 3", n)}});
}

}  // namespace

void bench_gram(Report& report, Device device, const Options& options) {
  bench_small(report, device, options.size(4096, 1024, 100));
  bench_wide(report, device, options.size(2048, 64));
  if (options.large || options.rehearse)
    bench_large(report, device, options.size(40132, 150));
  else
    report.leave_out("empirical NTK of 40132 inputs", "--large takes it in");
}

}  // namespace keel::bench
