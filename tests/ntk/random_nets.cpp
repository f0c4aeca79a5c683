// Random nets on random and hurtful inputs, against a net of plain loops in double: what it
// computes, its gradients, its kernel, and the interval that it never leaves.
#include <doctest/doctest.h>

#include "../../core/threads.h"
#include "../../kernels/gradient_sink.h"
#include "../../ntk/box_net.h"
#include "../../ntk/empirical_kernel.h"
#include "../../ntk/net_bound.h"
#include "../../ntk/tail_sum.h"
#include "../bits.h"
#include "plain_net.h"

namespace keel {
namespace {

using namespace plain_net;

constexpr int kDrawnNets = 300, kDrawnBounded = 100, kDrawnBehind = 200, kDrawnWithin = 150,
              kDrawnCut = 80;
constexpr std::int64_t kFarInputs = 1000;

Vector row_of(const Tensor& x, std::int64_t row) { return x[row].to_vector<double>(); }

double norm_of(const Vector& v) {
  double sum = 0;
  for (double value : v) sum += value * value;
  return std::sqrt(sum);
}

double distance(const Vector& a, const Vector& b) {
  REQUIRE(a.size() == b.size());
  Vector d = a;
  for (std::size_t i = 0; i < d.size(); ++i) d[i] -= b[i];
  return norm_of(d);
}

// Where rounding alone moves a result, it is not to be judged by more: the same net, every number
// of it moved by `part` of the largest.
Plain nudged(Dice& dice, const Net& net, double part) {
  const Net other = net.clone();
  Vector values = other.flat().to_vector<double>();
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  for (double& value : values) value += part * largest * (dice.below(2) ? 1 : -1);
  copy(other.flat(), Tensor::from(values, other.flat().shape()).to(other.flat().dtype()));
  return Plain(other);
}

enum class Inputs { ordinary, hurtful, vanishing };

Tensor random_inputs(Dice& dice, std::int64_t rows, std::int64_t features, Inputs kind) {
  const Vector hurtful = kind == Inputs::vanishing
                             ? Vector{0, 1e30, -1e30, 5e-324, 1e-310, -1e-30, 1, 1}
                             : Vector{0, 1e30, -1e30, 1e-30, -1e-3, 0, 1, 1};
  Vector values;
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool repeats = row > 0 && dice.below(4) == 0;
    const bool hurts = kind != Inputs::ordinary && dice.below(2) == 0;
    for (std::int64_t col = 0; col < features; ++col)
      values.push_back(repeats ? values[values.size() - static_cast<std::size_t>(features)]
                       : hurts ? hurtful[static_cast<std::size_t>(dice.below(8))]
                               : dice.normal());
  }
  return Tensor::from(values, {rows, features});
}

// [row * outputs + output], each a parameter's derivatives after another.
std::vector<Vector> jacobian_of(Plain& plain, const Tensor& x, std::int64_t outputs) {
  std::vector<Vector> rows;
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    plain.forward(row_of(x, row));
    for (std::int64_t output = 0; output < outputs; ++output) {
      rows.emplace_back();
      for (const Vector& part :
           plain.backward(static_cast<std::size_t>(outputs), static_cast<std::size_t>(output)))
        rows.back().insert(rows.back().end(), part.begin(), part.end());
    }
  }
  return rows;
}

struct Results {
  Tensor outputs, kernel;
  Vector gradient;
};

// Of a weighted sum of all outputs.
Results results_of(const Net& net, const Tensor& x, const Tensor& weights) {
  Tape tape;
  const std::vector<Var> leaves = net.leaves(tape);
  GradientSink gradients;
  tape.backward(net.forward(x, leaves), weights, gradients);
  Results results{
      net.predict(x), EmpiricalKernel(net.clone()).matrix(x.to(DType::f64), x.to(DType::f64)), {}};
  for (const Var& leaf : leaves) {
    const Vector part = gradients[leaf].to_vector<double>();
    results.gradient.insert(results.gradient.end(), part.begin(), part.end());
  }
  return results;
}

void check_net(Dice& dice, const Net& net, const Tensor& x, double rounding) {
  const std::int64_t rows = x.size(0), outputs = net.output_width();
  const Tensor weights = random_inputs(dice, rows, outputs, Inputs::ordinary).to(x.dtype());
  Results results;
  {
    const ThreadLimit one(1);
    results = results_of(net, x, weights);
  }
  const Results many = results_of(net, x, weights);
  CHECK(same_bits(results.outputs, many.outputs));
  CHECK(same_bits(results.kernel, many.kernel));
  CHECK(results.gradient == many.gradient);

  Plain plain(net), twin = nudged(dice, net, rounding);
  const double tolerance = 1e4 * rounding;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Vector wanted = plain.forward(row_of(x, row)), other = twin.forward(row_of(x, row));
    CHECK(distance(row_of(results.outputs, row), wanted) <=
          tolerance * norm_of(wanted) + 100 * distance(wanted, other) + 1e-300);
  }
  const std::vector<Vector> j = jacobian_of(plain, x, outputs), k = jacobian_of(twin, x, outputs);
  const Vector w = weights.to_vector<double>();
  Vector wanted(results.gradient.size());
  double size = 0, apart = 0;
  for (std::size_t i = 0; i < j.size(); ++i) {
    for (std::size_t e = 0; e < wanted.size(); ++e) wanted[e] += w[i] * j[i][e];
    size += std::abs(w[i]) * norm_of(j[i]);
    apart += std::abs(w[i]) * distance(j[i], k[i]);
  }
  CHECK(distance(results.gradient, wanted) <= tolerance * size + 100 * apart + 1e-300);

  const Vector theta = results.kernel.to_vector<double>();
  const auto count = static_cast<std::size_t>(outputs);
  for (std::size_t a = 0; a < j.size() / count; ++a)
    for (std::size_t b = 0; b < j.size() / count; ++b) {
      double sum = 0, scale = 0, moved = 0;
      for (std::size_t c = 0; c < count; ++c) {
        const Vector &u = j[a * count + c], &v = j[b * count + c];
        for (std::size_t e = 0; e < u.size(); ++e) sum += u[e] * v[e];
        scale += norm_of(u) * norm_of(v);
        moved +=
            norm_of(u) * distance(v, k[b * count + c]) + norm_of(v) * distance(u, k[a * count + c]);
      }
      const double n = static_cast<double>(count);
      CHECK(std::abs(theta[a * static_cast<std::size_t>(rows) + b] - sum / n) <=
            (tolerance * scale + 100 * moved) / n + 1e-300);
    }
}

TEST_CASE("random nets: outputs, gradients and kernels are those of plain loops") {
  Dice dice{std::mt19937_64(7)};
  for (int i = 0; i < kDrawnNets; ++i) {
    const Spec spec = random_spec(dice, 40, false);
    const std::int64_t features = 1 + dice.below(5);
    const std::int64_t rows = std::vector<std::int64_t>{0, 1, 2, 3, 7, 17}[dice.below(6)];
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    CAPTURE(rows);
    const DType dtype = i % 4 == 3 ? DType::f32 : DType::f64;
    const Net net = random_net(dice, spec, features, dtype);
    // Without eps the derivative at a number that all but vanishes is infinite.
    const bool exact = std::ranges::any_of(
        spec, [](const LayerSpec& layer) { return normalises_rows(layer.kind) && layer.eps == 0; });
    const Inputs kind = dtype == DType::f32 || dice.below(2) == 0 ? Inputs::ordinary
                        : exact                                   ? Inputs::hurtful
                                                                  : Inputs::vanishing;
    check_net(dice, net, random_inputs(dice, rows, features, kind).to(dtype),
              dtype == DType::f64 ? 1e-15 : 6e-7);
  }
}

// Of one input after another: ordinary ones, far ones, along an axis, and huge or tiny ones.
Tensor far_inputs(Dice& dice, std::int64_t rows, std::int64_t features) {
  Vector values;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double length = std::pow(10, static_cast<double>(dice.below(13)) - 4);
    const bool sparse = dice.below(3) == 0;
    for (std::int64_t col = 0; col < features; ++col)
      values.push_back(sparse && dice.below(2) == 0 ? 0 : length * dice.normal());
  }
  const Tensor far = Tensor::from(values, {rows, features});
  copy(far.slice(0, 20), random_inputs(dice, 20, features, Inputs::vanishing));
  return far;
}

double fraction(Dice& dice) { return static_cast<double>(dice.below(1 << 20)) / (1 << 20); }

// Of |x| <= within: on the edge, anywhere, or near 0.
Tensor near_inputs(Dice& dice, std::int64_t rows, std::int64_t features, double within) {
  Vector values;
  for (std::int64_t row = 0; row < rows; ++row) {
    Vector x;
    for (std::int64_t col = 0; col < features; ++col) x.push_back(dice.normal());
    const double parts[] = {1, 1, fraction(dice), 1e-4 * fraction(dice)};
    const double length = parts[dice.below(4)] * within * (1 - 1e-12) / norm_of(x);
    for (const double value : x) values.push_back(length * value);
  }
  return Tensor::from(values, {rows, features});
}

// Holds the net to its bound, by few steps.
void check_bound(Dice& dice, const Net& net, bool narrow, double within = kInfinity,
                 std::int64_t boxes = 0) {
  const NetBound bound = bound_net(net, {.within = within,
                                         .narrow = narrow,
                                         .steps = 20,
                                         .unit_steps = 10,
                                         .image_steps = 20,
                                         .unit_image_steps = 10,
                                         .pieces = boxes > 0 ? 0 : NetBoundOptions{}.pieces,
                                         .boxes = boxes});
  REQUIRE(bound.bounded);
  const Tensor far = std::isinf(within) ? far_inputs(dice, kFarInputs, net.input_width())
                                        : near_inputs(dice, kFarInputs, net.input_width(), within);
  const Vector found = net.predict(far).to_vector<double>();
  for (std::size_t at = 0; at < found.size(); ++at) {
    const Interval& proved = bound.outputs[at % bound.outputs.size()];
    const double beyond = std::max(proved.low - found[at], found[at] - proved.high);
    if (beyond <= 0) continue;
    // Of weights that are the same in every row, rounding far out leaves nothing of the biases.
    const Vector x = row_of(far, static_cast<std::int64_t>(at / bound.outputs.size()));
    const Vector here = Plain(net).forward(x);
    double moved = 0;
    for (int twin = 0; twin < 4; ++twin)
      moved += distance(here, nudged(dice, net, 1e-15).forward(x));
    if (beyond <= 100 * moved) continue;
    FAIL_CHECK(found[at], " is not in [", proved.low, ", ", proved.high, "]");
    break;
  }
}

TEST_CASE("random nets: no input's output leaves the interval that was proved") {
  Dice dice{std::mt19937_64(11)};
  for (int i = 0; i < kDrawnBounded; ++i) {
    const Spec spec = random_spec(dice, 6, true);
    const std::int64_t features = 1 + dice.below(3);
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    check_bound(dice, random_net(dice, spec, features, DType::f64), i % 4 != 0);
  }
}

TEST_CASE("random nets: nor where norms stand within residuals behind the last other one") {
  Dice dice{std::mt19937_64(12)};
  int behind = 0;
  for (int i = 0; behind < kDrawnBehind; ++i) {
    const Spec spec = random_spec(dice, 9, true);
    const Net net = random_net(dice, spec, 1 + dice.below(3), DType::f64);
    if (sets_of(tail_sum_of(net, false)) == 1) continue;
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    check_bound(dice, net, ++behind % 4 != 0);
  }
}

TEST_CASE("random nets: nor what is proved of inputs within a distance, with a norm or without") {
  Dice dice{std::mt19937_64(13)};
  int told = 0;
  for (int i = 0; told < kDrawnWithin; ++i) {
    const Spec spec = random_spec(dice, 7, false);
    const Net net = random_net(dice, spec, 1 + dice.below(4), DType::f64);
    const double within = std::pow(10, static_cast<double>(dice.below(7)) - 3);
    if (!tail_sum_within(net, within)) continue;
    ++told;
    CAPTURE(i);
    CAPTURE(within);
    CAPTURE(spec_text(spec));
    check_bound(dice, net, i % 4 != 0, within);
  }
}

TEST_CASE("random nets: nor what boxes prove, within a distance and of every input") {
  Dice dice{std::mt19937_64(14)};
  for (int i = 0; i < kDrawnCut; ++i) {
    const bool normed = i % 2 == 0;
    const Spec spec = random_spec(dice, 7, normed);
    const Net net = random_net(dice, spec, 1 + dice.below(3), DType::f64);
    CAPTURE(i);
    CAPTURE(spec_text(spec));
    const double within = normed ? kInfinity : std::pow(10, static_cast<double>(dice.below(7)) - 3);
    check_bound(dice, net, true, within, 600);
  }
}

}  // namespace
}  // namespace keel
