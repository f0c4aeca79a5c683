// Each activation, forward and backward, against a copy and PyTorch.
#include <algorithm>
#include <array>
#include <cmath>

#include "../core/random.h"
#include "../keel.h"
#include "bench.h"
#include "exact_activations.h"
#include "memory_rows.h"
#include "peer.h"

namespace keel::bench {
namespace {

// leaky relu's, and what prelu's begin with, as SLOPE and PRELU of the peers' script
constexpr double kSlope = 0.01, kPrelu = 0.25;

double gelu_argument(double x) { return x * (kGeluLinear + kGeluCubic * x * x); }

/// An op, of x and of slopes that prelu alone takes, and what it is to be held to, in double.
struct Activation {
  const char* name;
  Var (*op)(const Var& x, const Var& slopes);
  ExactActivation exact;
};

constexpr std::array<Activation, 10> kActivations = {{
    {"relu",
     [](const Var& x, const Var&) { return relu(x); },
     {[](double x) { return std::max(x, 0.0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }}},
    {"leakyrelu",
     [](const Var& x, const Var&) { return leaky_relu(x, kSlope); },
     {[](double x) { return std::max(x, kSlope * x); },
      [](double x) { return x > 0 ? 1.0 : kSlope; }}},
    {"prelu",
     [](const Var& x, const Var& slopes) { return prelu(x, slopes); },
     {[](double x) { return std::max(x, kPrelu * x); },
      [](double x) { return x > 0 ? 1.0 : kPrelu; }}},
    {"gelu", [](const Var& x, const Var&) { return gelu(x); }, kExactGelu},
    {"gelu(tanh=1)",
     [](const Var& x, const Var&) { return gelu_by_tanh(x); },
     {[](double x) { return x * logistic(gelu_argument(x)); },
      [](double x) {
        const double z = gelu_argument(x), slope = kGeluLinear + 3 * kGeluCubic * x * x;
        return logistic(z) * (1 + x * slope * logistic(-z));
      }}},
    {"silu", [](const Var& x, const Var&) { return silu(x); }, kExactSilu},
    {"tanh",
     [](const Var& x, const Var&) { return tanh(x); },
     {[](double x) { return std::tanh(x); },
      [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }}},
    {"sigmoid",
     [](const Var& x, const Var&) { return sigmoid(x); },
     {logistic, [](double x) { return logistic(x) * logistic(-x); }}},
    {"softplus",
     [](const Var& x, const Var&) { return softplus(x); },
     {[](double x) { return std::log1p(std::exp(x)); }, logistic}},
    {"elu", [](const Var& x, const Var&) { return elu(x); }, kExactElu},
}};

std::string row_name(const Activation& activation, const char* pass, const Shape& shape,
                     Device device) {
  return fmt::format("{} {}, {} x {}{}", activation.name, pass, shape[0], shape[1],
                     on_threads(device));
}

std::string case_name(const Activation& activation, const char* pass, const Shape& shape) {
  return fmt::format("{} {} {}x{}", activation.name, pass, shape[0], shape[1]);
}

// The last row of both passes: a wrong op is not worth timing.
void verify(const Activation& activation, const Tensor& x, const Tensor& slopes,
            const Tensor& d_out) {
  Tape tape;
  GradientSink gradients;
  const Var leaf = tape.leaf(x), out = activation.op(leaf, slopes);
  tape.backward(out, d_out, gradients);
  const auto row = [&](const Tensor& t) { return t[x.size(0) - 1].to_vector<double>(); };
  const std::vector<double> at = row(x), d = row(d_out), got = row(out.value()),
                            d_got = row(gradients[leaf]);
  const auto hold = [&](const char* pass, double value, double wanted) {
    check(std::abs(value - wanted) < 1e-5 * (1 + std::abs(wanted)), "bench",
          "{} {} gives {}, wanted {}", activation.name, pass, value, wanted);
  };
  for (std::size_t j = 0; j < at.size(); ++j) {
    hold("forward", got[j], activation.exact.value(at[j]));
    hold("backward", d_got[j], d[j] * activation.exact.derivative(at[j]));
  }
}

void bench_shape(Report& report, Device device, const Shape& shape) {
  const Tensor x = normal(shape, {1, 1}).to(device), d_out = normal(shape, {1, 2}).to(device);
  const Tensor slopes = Tensor::full({shape[1]}, kPrelu).to(device);
  MemoryRows rows(report, x);
  for (const Activation& activation : kActivations) {
    verify(activation, x, slopes, d_out);
    rows.add(row_name(activation, "forward", shape, device), 2, [&] { activation.op(x, slopes); });
    Tape tape;
    const Var leaf = tape.leaf(x), out = activation.op(leaf, tape.leaf(slopes));
    DropInput gradients(leaf);
    // Reads what was saved and d_out, writes d_x; prelu's slopes' derivatives are next to nothing.
    rows.add(row_name(activation, "backward", shape, device), 3,
             [&] { tape.backward(out, d_out, gradients); });
  }
}

void bench_peers(Report& report, Device device, const std::vector<Shape>& shapes) {
  std::string listed;
  for (const Shape& shape : shapes)
    listed += fmt::format("{}{}x{}", listed.empty() ? "" : ",", shape[0], shape[1]);
  for (const auto& [name, peer] : {std::pair("PyTorch", "eager"), {"torch.compile", "compile"}}) {
    const PeerOutput output =
        run_peer(device, "activation_torch.py", fmt::format("--peer {} --shapes {}", peer, listed));
    for (const Shape& shape : shapes)
      for (const Activation& activation : kActivations)
        for (const char* pass : {"forward", "backward"})
          report.add_peers(
              row_name(activation, pass, shape, device),
              {peer_time(name, output, 1, "cases/" + case_name(activation, pass, shape))});
  }
}

}  // namespace

void bench_activation(Report& report, Device device, const Options& options) {
  // A small net's, and one beyond all caches.
  std::vector<Shape> shapes = {{100, 128}, {device.is_cuda() ? 1 << 20 : 1 << 16, 128}};
  if (options.quick) shapes.back() = {4096, 128};
  if (options.rehearse) shapes = {{3, 128}};
  for (const int threads : thread_choices(device)) {
    const ThreadLimit limit(threads);
    for (const Shape& shape : shapes) bench_shape(report, device, shape);
    report.later([&report, device, shapes] { bench_peers(report, device, shapes); });
  }
}

}  // namespace keel::bench
