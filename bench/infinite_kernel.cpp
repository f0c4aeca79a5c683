// Infinite-width NTK of n inputs, of several activations and with Layer Norm, beside
// neural_tangents and its formulas in JAX.
#include "../ntk/infinite_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "../core/random.h"
#include "bench.h"
#include "exact_activations.h"
#include "peer.h"
#include "sizes.h"

namespace keel::bench {
namespace {

constexpr double kNormEps = 1e-5;
constexpr double kPi = std::numbers::pi;

/// E[phi(u) phi(u')] and E[phi'(u) phi'(u')].
struct PairMoments {
  double value = 0, slope = 0;
};

PairMoments relu_moments(double q1, double q2, double k) {
  const double size = std::sqrt(q1 * q2), angle = std::acos(std::clamp(k / size, -1.0, 1.0));
  return {(size * std::sin(angle) + (kPi - angle) * k) / (2 * kPi), (kPi - angle) / (2 * kPi)};
}

constexpr int kSteps = 256;  // of Simpson's rule, on either side of 0
constexpr double kStep = 8.0 / kSteps;

// Of a standard normal number at kStep (i - kSteps).
std::array<double, 2 * kSteps + 1> simpson_weights() {
  std::array<double, 2 * kSteps + 1> weights{};
  for (int i = -kSteps; i <= kSteps; ++i)
    weights[static_cast<std::size_t>(i + kSteps)] =
        (i % 2 == 0 ? 2 : 4) * kStep / 3 * normal_density(kStep * i);
  return weights;
}

/// Of a function with no kink but at 0, by Simpson's rule over both numbers that u and u' are made
/// of: 0 is where two of its parabolas meet.
template <const ExactActivation& kPhi>
PairMoments by_simpson(double q1, double q2, double k) {
  static const auto kWeights = simpson_weights();
  const double along = k / std::sqrt(q1), across = std::sqrt(std::max(q2 - along * along, 0.0));
  PairMoments sum;
  for (int i = -kSteps; double outer_weight : kWeights) {
    PairMoments inner;
    for (int j = -kSteps; double weight : kWeights) {
      const double other = kStep * (along * i + across * j++);
      inner.value += weight * kPhi.value(other);
      inner.slope += weight * kPhi.derivative(other);
    }
    const double u = kStep * std::sqrt(q1) * i++;
    sum.value += outer_weight * kPhi.value(u) * inner.value;
    sum.slope += outer_weight * kPhi.derivative(u) * inner.slope;
  }
  return sum;
}

/// A net of two hidden layers of one activation, each with or without a norm ahead of it.
struct InfiniteNet {
  const char* activation;
  bool layer_norm;
  PairMoments (*moments)(double q1, double q2, double k);
  bool in_jax;               ///< whether infinite_jax.py has its formulas
  std::int64_t full, quick;  ///< inputs

  std::string spec() const {
    const char* norm = layer_norm ? "layernorm(affine=0) " : "";
    return fmt::format("dense(128) {0}{1} dense(128) {0}{1} dense(1)", norm, activation);
  }

  std::string row(std::int64_t n) const {
    const bool named = std::string_view(activation) != "relu";
    return fmt::format("infinite NTK {0} x {0}{1}{2}{3}", n, named ? ", " : "",
                       named ? activation : "", layer_norm ? ", LN every" : "");
  }
};

// A pair of silu's is 64 integrals, of elu's 169: fewer inputs take as long.
constexpr std::array kInfiniteNets = {
    InfiniteNet{"relu", false, relu_moments, true, 8192, 2048},
    InfiniteNet{"relu", true, relu_moments, true, 8192, 2048},
    InfiniteNet{"gelu", false, by_simpson<kExactGelu>, true, 8192, 2048},
    InfiniteNet{"silu", false, by_simpson<kExactSilu>, false, 1024, 512},
    InfiniteNet{"elu", false, by_simpson<kExactElu>, false, 1024, 512},
};

// Theta, sigma_w2 = 2 and sigma_b2 = 0.01, layer by layer in double.
double theta(const InfiniteNet& net, const std::vector<double>& x, const std::vector<double>& y) {
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return 2 * sum / static_cast<double>(a.size()) + 0.01;
  };
  double k = product(x, y), xx = product(x, x), yy = product(y, y), t = k;
  for (int layer = 0; layer < 2; ++layer) {
    if (net.layer_norm) {
      const double size = std::sqrt((xx + kNormEps) * (yy + kNormEps));
      k /= size;
      t /= size;
      xx /= xx + kNormEps;
      yy /= yy + kNormEps;
    }
    const PairMoments m = net.moments(xx, yy, k);
    k = 2 * m.value + 0.01;
    t = 2 * t * m.slope + k;
    xx = 2 * net.moments(xx, xx, xx).value + 0.01;
    yy = 2 * net.moments(yy, yy, yy).value + 0.01;
  }
  return t;
}

void bench_net(Report& report, Device device, const InfiniteNet& net, std::int64_t n) {
  const InfiniteKernel kernel(net.spec(), kFeatures, {.device = device});
  const Tensor x = normal({n, kFeatures}, {1, 1}).to(DType::f64).to(device);
  const Tensor into = Tensor::empty({n, n}, DType::f32, device);
  const auto points = kernel.points(x);
  const auto verify = [&] {
    for (const auto& [i, j] :
         {std::pair{n - 1, n - 1}, {n - 1, n / 2}, {n / 2 + 1, std::int64_t{0}}}) {
      const std::vector<double> a = x[i].to_vector<double>(), b = x[j].to_vector<double>();
      const double got = into[i].slice(j, j + 1).item(), wanted = theta(net, a, b);
      const double size = std::sqrt(theta(net, a, a) * theta(net, b, b));
      check(std::abs(got - wanted) < 1e-5 * size, "bench",
            "infinite_kernel of {} gives {}, wanted {}", net.activation, got, wanted);
    }
  };

  const auto pairs = static_cast<double>(n * n);
  const std::string what = net.row(n);
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
  report.later([&report, device, net, n, row = what + ", full"] {
    const std::string of = fmt::format("--n {} --activation {}{}", n, net.activation,
                                       net.layer_norm ? " --layernorm" : "");
    std::vector<PeerTime> peers = {peer_time("neural_tangents", device, "infinite_nt.py", of)};
    if (net.in_jax) {
      peers.push_back(peer_time("jax", device, "infinite_jax.py", of));
      peers.push_back(peer_time("jax, float32", device, "infinite_jax.py", of + " --float32"));
    }
    report.add_peers(row, peers);
  });
}

}  // namespace

void bench_infinite_kernel(Report& report, Device device, const Options& options) {
  for (const InfiniteNet& net : kInfiniteNets)
    bench_net(report, device, net, options.size(net.full, net.quick, 70));
}

}  // namespace keel::bench
