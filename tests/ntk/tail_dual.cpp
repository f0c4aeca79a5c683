// What a net's bound is made of: maxima of one unit, over a shell, and the dual for any
// multipliers.
#include "../../ntk/tail_dual.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../../ntk/shell_maximum.h"
#include "../oracle.h"
#include "activations.h"
#include "dual_problem.h"

namespace keel {
namespace {

TEST_CASE("scalar_maximum: against a fine grid, for every activation") {
  for (LayerKind phi : kActivations)
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(static_cast<int>(phi));
      CAPTURE(seed);
      const double slope = seed % 2 == 0 ? 0.3 : 1;
      const Vector r = draws(10, seed);
      const double alpha = std::vector<double>{1, 0.3, 4}[seed % 3], beta = alpha;
      const bool by_tanh = phi == LayerKind::gelu && seed % 5 < 2;
      ScalarProblem problem{
          LayerSpec{.kind = phi, .slope = slope, .alpha = alpha, .beta = beta, .by_tanh = by_tanh},
          r[0],
          seed % 3 == 0 ? r[1] : 0,
          seed % 4 == 0 ? r[9] : 0,
          r[2],
          2 * r[3],
          3 * r[4],
          r[5],
          std::exp(2 * r[6])};
      problem.low = std::min(r[7], r[8]);
      problem.high = seed % 20 == 0 ? problem.low : std::max(r[7], r[8]);
      double largest = -1e300, size = 1;
      for (int i = 0; i <= 20000; ++i) {
        const double y = problem.low + (problem.high - problem.low) * i / 20000;
        const double z = problem.origin + problem.scale * y;
        // written out once more: an oracle shares nothing with what it is held to
        const double p = (phi == LayerKind::relu        ? std::max(z, 0.0)
                          : phi == LayerKind::leakyrelu ? std::max(z, slope * z)
                          : phi == LayerKind::tanh      ? std::tanh(z)
                          : phi == LayerKind::sigmoid   ? 1 / (1 + std::exp(-z))
                          : phi == LayerKind::softplus  ? (z > 30 ? z : std::log(1 + std::exp(z)))
                          : phi == LayerKind::elu       ? oracle::elu(z, alpha)
                          : phi == LayerKind::selu      ? oracle::selu(z)
                          : by_tanh                     ? oracle::gelu_by_tanh(z)
                          : phi == LayerKind::gelu ? z * 0.5 * (1 + std::erf(z / std::sqrt(2.0)))
                                                   : oracle::silu(z, beta)) -
                         problem.centre;
        const double value = problem.w * p + problem.theta * p * p - problem.cross * y * p -
                             problem.sigma * y - problem.kappa * y * y;
        largest = std::max(largest, value);
        size = std::max(size, std::abs(value));
      }
      const ScalarMaximum found = scalar_maximum(problem, 1e-6);
      CHECK(found.value >= largest - 1e-12 * size);
      CHECK(found.value <= largest + 2e-4 * (size + problem.scale));
      CHECK(value_at(problem, found.y) >= largest - 1e-5 * size);
      CHECK(found.y >= problem.low);
      CHECK(found.y <= problem.high);
    }
}

TEST_CASE("scalar_maximum: far from 0, narrow, wide, and of a unit that never changes") {
  ScalarProblem far{.phi = LayerKind::gelu, .w = 1, .sigma = 50, .origin = 200, .scale = 50};
  CHECK(scalar_maximum(far, 1e-9).value == doctest::Approx(200));
  far.w = -1;
  far.sigma = 0;
  CHECK(scalar_maximum(far, 1e-9).value == doctest::Approx(-150));
  // gelu's least value, -0.16997 at -0.75179; silu's, -0.27846 at -1.27846
  const ScalarProblem gelu{.phi = LayerKind::gelu, .w = -1, .scale = 1000};
  CHECK(scalar_maximum(gelu, 1e-9).value == doctest::Approx(0.169971).epsilon(1e-5));
  for (const double beta : {0.02, 1.0, 50.0}) {
    const ScalarProblem silu{
        .phi = LayerSpec{.kind = LayerKind::silu, .beta = beta}, .w = -1, .scale = 1000};
    CHECK(scalar_maximum(silu, 1e-9).value == doctest::Approx(0.278465 / beta).epsilon(1e-5));
    CHECK(scalar_maximum(silu, 1e-9).y == doctest::Approx(-1.27846e-3 / beta).epsilon(1e-2));
  }
  // tanh's ends, and one that has far to go to them
  const ScalarProblem tanh{.phi = LayerKind::tanh, .w = -1, .theta = -0.25, .scale = 1e9};
  CHECK(scalar_maximum(tanh, 1e-9).value == doctest::Approx(0.75).epsilon(1e-6));
  CHECK(scalar_maximum(tanh, 1e-9).value >= 0.75);
  for (LayerKind phi : kActivations) {
    // scale 0: phi is a constant, and the parabola -y^2 - y/2 + is largest at -1/4
    const ScalarProblem constant{
        .phi = phi, .w = 2, .sigma = 0.5, .kappa = 1, .origin = 3, .scale = 0};
    CHECK(scalar_maximum(constant, 1e-9).value ==
          doctest::Approx(2 * Activation(phi)(3) + 0.0625).epsilon(1e-6));
  }
}

TEST_CASE("shell_maximum: against every direction of a plane, and in the hard case") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Vector r = draws(5, seed);
    Vector values = {r[0], r[1]}, g = {r[2], seed % 5 == 0 ? 0 : r[3]};
    if (seed % 7 == 0) g = {0, 0};
    std::sort(values.begin(), values.end());
    const double inner = seed % 2 == 0 ? 0 : std::min(1.0, std::abs(r[4]));
    double largest = -1e300;
    for (int i = 0; i < 2000; ++i)
      for (int j = 0; j <= 40; ++j) {
        const double radius = inner + (1 - inner) * j / 40, angle = i * 3.14159265358979 / 1000;
        const double a = radius * std::cos(angle), b = radius * std::sin(angle);
        largest = std::max(largest, a * (g[0] + values[0] * a) + b * (g[1] + values[1] * b));
      }
    const ShellMaximum found = shell_maximum(values, g, inner);
    CHECK(found.value >= largest - 1e-12);
    CHECK(found.value <= largest + 2e-3);
    const double there =
        found.u[0] * (g[0] + values[0] * found.u[0]) + found.u[1] * (g[1] + values[1] * found.u[1]);
    CHECK(there == doctest::Approx(found.value).epsilon(1e-3));
  }
  CHECK(shell_maximum({}, {}, 0).value == 0);
  CHECK(shell_maximum({-1}, {0}, 0).value == doctest::Approx(0));
  CHECK(shell_maximum({-1}, {0}, 0.5).value == doctest::Approx(-0.25));
  CHECK(shell_maximum({-1}, {4}, 0.5).value == doctest::Approx(3));
  CHECK(shell_maximum({2, 2, 2}, {0, 0, 0}, 1).value == doctest::Approx(2));
}

// h of x, as a layernorm behind dense(width) computes it, or an rmsnorm, which is not `centred`.
Vector normed_of(const Vector& weight, const Vector& bias, const Vector& x, double eps,
                 bool centred) {
  Vector z = bias;
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(z.size());
  for (std::size_t i = 0; i < z.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) z[i] += weight[i * x.size() + j] * x[j];
  for (double value : z) mean += centred ? value / n : 0;
  for (double value : z) variance += (value - mean) * (value - mean) / n;
  for (double& value : z) value = (value - mean) / std::sqrt(variance + eps);
  return z;
}

TEST_CASE("norm_set: holds the Layer Norm, or the RMSNorm, of every input") {
  for (double eps : {0.0, 1e-5, 2.0})
    for (std::uint64_t trial = 0; trial < 60; ++trial) {
      const bool centred = trial < 30;
      const std::uint64_t seed = trial % 30;
      CAPTURE(seed);
      CAPTURE(centred);
      const std::int64_t inputs = 1 + static_cast<std::int64_t>(seed % 3);
      const std::size_t width = seed % 4 == 0 ? 6 : 20;
      Vector weight = draws(width * static_cast<std::size_t>(inputs), seed),
             bias = draws(width, seed + 100);
      if (seed % 5 == 0) std::fill(bias.begin(), bias.end(), 0.3);  // centred: nothing
      if (seed % 6 == 0)
        for (std::size_t i = 0; i < width; ++i) weight[i * static_cast<std::size_t>(inputs)] = 0.7;
      const NormSet set = normed_after_dense(weight, bias, inputs, eps, {}, centred);
      CHECK(set.centred == centred);
      const auto k = static_cast<std::size_t>(set.rank);
      if (set.whole) {
        CHECK((inputs + 1 >= static_cast<std::int64_t>(width) - centred || seed % 6 == 0));
        continue;
      }
      // Not centred, equal numbers are a direction, of which a column and the bias have one.
      CHECK(set.half == (seed % 5 != 0 || (!centred && seed % 6 != 0)));
      for (std::uint64_t at = 0; at < 50; ++at) {
        Vector x = draws(static_cast<std::size_t>(inputs), seed * 1000 + at);
        for (double& value : x) value *= std::pow(10, -4.0 + 0.2 * static_cast<double>(at));
        const Vector h = normed_of(weight, bias, x, eps, centred);
        Vector u(k), back(width);
        for (std::size_t i = 0; i < width; ++i)
          for (std::size_t j = 0; j < k; ++j)
            u[j] += set.basis[i * k + j] * h[i] / std::sqrt(static_cast<double>(width));
        double off = 0;
        for (std::size_t i = 0; i < width; ++i) {
          for (std::size_t j = 0; j < k; ++j)
            back[i] += std::sqrt(static_cast<double>(width)) * set.basis[i * k + j] * u[j];
          off = max_or_nan(off, std::abs(back[i] - h[i]));
        }
        CHECK(off < 1e-9);  // h lies in the span
        const double length = std::sqrt(dot(u, u));
        CHECK(length <= 1 + 1e-12);
        CHECK(length >= set.inner);
        if (set.half) CHECK(u.back() >= -1e-12);
      }
    }
  // Columns that rounding alone tells apart leave the dimension open: every h is allowed.
  Vector weight = draws(20, 1), bias = draws(20, 2);
  Vector twice;
  for (double value : weight) twice.insert(twice.end(), {value, value * (1 + 1e-12)});
  CHECK(normed_after_dense(twice, bias, 2, 1e-5).whole);
  CHECK(!normed_after_dense(weight, bias, 1, 1e-5).whole);
}

// A u of the set with |u| = 1, but for its cone; empty where the draw is beyond the side.
Vector drawn_of(const NormSet& set, std::uint64_t seed) {
  Vector u = draws(static_cast<std::size_t>(set.rank), seed);
  const double length = std::sqrt(dot(u, u));
  for (double& value : u) value /= length;
  if (set.half) {
    const double before = u.back(),
                 last = std::clamp(std::abs(before), set.last.low, set.last.high);
    for (double& value : u) value *= std::sqrt((1 - last * last) / (1 - before * before));
    u.back() = last;
  }
  const bool beyond = !set.side.empty() && dot(u, set.side) < -set.beyond;
  return beyond ? Vector() : u;
}

TEST_CASE(
    "tail_dual: any multipliers bound f; it is convex in all but couplings, and has its slope") {
  for (const char* spec :
       {"dense(6) layernorm relu dense(1)", "dense(6) relu layernorm gelu dense(1)",
        "dense(6) layernorm relu dense(5) relu dense(1)",
        "dense(6) relu layernorm silu dense(4) silu dense(1)",
        "dense(6) relu layernorm softplus dense(4) sigmoid dense(1)",
        "dense(6) relu layernorm elu(alpha=3) dense(4) elu dense(1)",
        "dense(6) layernorm selu dense(4) selu dense(1)",
        "dense(6) layernorm dense(7) relu dense(1)",
        "dense(6) layernorm gelu dense(3) relu dense(4) relu dense(1)",
        "dense(6) layernorm leakyrelu(slope=0.3) dense(5) tanh dense(1)",
        "dense(6) layernorm prelu(per_unit=1) dense(5) prelu dense(1)",
        "dense(6) layernorm residual(prelu(per_unit=1) dense(6)) prelu(per_unit=1) dense(1)",
        "dense(6) relu layernorm dense(4) relu dense(3) gelu dense(1)",
        "dense(6) layernorm residual(dense(5) relu dense(6)) dense(1)",
        "dense(6) layernorm residual(relu dense(6)) residual(dense(4) gelu dense(6)) dense(1)",
        "dense(6) relu layernorm dense(4) residual(silu dense(4)) residual(relu) dense(1)",
        "dense(5) layernorm residual(dense(4) relu dense(3) relu dense(5)) relu dense(1)",
        // The last term's set has a side, and the second one's u's last coordinate two ends.
        "dense(7) layernorm residual(layernorm dense(6) relu dense(7)) dense(1)",
        "dense(7) layernorm residual(dense(8) rmsnorm gelu dense(7)) dense(1)"})
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(spec);
      CAPTURE(seed);
      const DualProblem problem(spec, seed,
                                seed % 2 == 0 || std::string(spec).starts_with("dense(6) relu"));
      int tried = 0;
      double largest = -1e300;
      for (std::uint64_t at = 0; at < 500; ++at) {
        const Vector u = drawn_of(problem.tail.set, 77 + at);
        if (u.empty()) continue;
        largest = std::max(largest, tail_at(problem.tail, u)[0]);
        ++tried;
      }
      CHECK(tried > 20);
      Vector gradient, other_gradient;
      const Vector x = problem.multipliers(seed + 900), y = problem.multipliers(seed + 500);
      Vector beside = y;  // of what it is convex in
      for (std::size_t i = 0; i < x.size(); ++i)
        if (problem.dual->multipliers().coupled[i]) beside[i] = x[i];
      const double at_x = problem.at(x, gradient), at_y = problem.at(y, other_gradient),
                   at_beside = problem.at(beside, other_gradient);
      CHECK(at_x >= largest);
      CHECK(at_y >= largest);
      Vector step(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) step[i] = y[i] - x[i];
      Vector step_beside(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) step_beside[i] = beside[i] - x[i];
      CHECK(at_beside >= at_x + dot(gradient, step_beside) - 1e-4 * (1 + std::abs(at_x)));
      // and it is the slope: along a short step the dual does not leave its tangent
      Vector near = x;
      for (std::size_t i = 0; i < x.size(); ++i) near[i] += 1e-7 * step[i];
      CHECK(std::abs(problem.at(near, other_gradient) - at_x - 1e-7 * dot(gradient, step)) <
            1e-8 * (1 + std::abs(at_x)));
    }
}

}  // namespace
}  // namespace keel
