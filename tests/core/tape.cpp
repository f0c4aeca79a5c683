#include "../../core/tape.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <stdexcept>

#include "../../core/random.h"
#include "../../kernels/arithmetic.h"
#include "../../kernels/dense.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/mse.h"
#include "../../kernels/relu.h"
#include "../../kernels/sum.h"

using namespace keel;

using Doubles = std::vector<double>;

static Tensor values(const Doubles& v) {
  return Tensor::from(v, {static_cast<std::int64_t>(v.size())});
}

// x, unchanged; on the way back `pullback` sees the cotangent, which then goes on to x.
static Var probe(const Var& x, std::function<void(const Tensor&, Backward&)> pullback) {
  return record("probe", x.value(), {&x},
                [slot = x.slot(), pullback](const Tensor& d_out, Backward& backward) {
                  pullback(d_out, backward);
                  backward.add(slot, d_out);
                });
}

TEST_CASE("a leaf used several times gathers every share") {
  Tape tape;
  GradientSink gradients;
  const Var a = tape.leaf(values({1, 2, 3}));
  // f = sum(a a + 2 a + a): df = 2 a + 3
  tape.backward(sum(add(add(mul(a, a), scale(a, 2)), a)), gradients);
  CHECK(gradients[a].to_vector<double>() == Doubles{5, 7, 9});
}

TEST_CASE("a value added to itself has twice the derivative, and the cotangent stays as it was") {
  Tape tape;
  GradientSink gradients;
  const Var a = tape.leaf(values({1, 2}));
  const Tensor d_output = values({1, 10});
  tape.backward(add(a, a), d_output, gradients);
  CHECK(gradients[a].to_vector<double>() == Doubles{2, 20});
  CHECK(d_output.to_vector<double>() == Doubles{1, 10});
  const Var twice = add(a, a);
  tape.backward(add(twice, twice), d_output, gradients);
  CHECK(gradients[a].to_vector<double>() == Doubles{4, 40});
  CHECK(d_output.to_vector<double>() == Doubles{1, 10});
}

TEST_CASE("paths that part and meet again add up") {
  Tape tape;
  GradientSink gradients;
  const Var x = tape.leaf(values({2, -3}));
  const Var trunk = scale(x, 3);
  const Var left = mul(trunk, trunk), right = scale(trunk, -1);
  // f = sum(9 x^2 (-3 x)) = -27 x^3
  tape.backward(sum(mul(left, right)), gradients);
  CHECK(gradients[x].to_vector<double>() == Doubles{-81 * 4, -81 * 9});
}

TEST_CASE("the output may be a leaf, and nodes after the output do not count") {
  Tape tape;
  GradientSink gradients;
  const Var a = tape.leaf(values({1, 2}));
  const Var doubled = scale(a, 2);
  int seen = 0;
  probe(doubled, [&](const Tensor&, Backward&) { ++seen; });
  tape.backward(a, values({5, 6}), gradients);
  CHECK(gradients[a].to_vector<double>() == Doubles{5, 6});
  tape.backward(doubled, values({5, 6}), gradients);
  CHECK(gradients[a].to_vector<double>() == Doubles{10, 12});
  CHECK(seen == 0);
}

TEST_CASE("operations on constants record nothing") {
  Tape tape;
  const Var a = values({1, 2});
  const Var b = mul(add(a, a), scale(a, 3));
  CHECK(b.tape() == nullptr);
  CHECK(b.slot() == kNoSlot);
  CHECK(b.value().to_vector<double>() == Doubles{6, 24});
  CHECK(tape.nodes() == 0);
  const Var leaf = tape.leaf(values({1, 1}));
  CHECK(tape.nodes() == 1);
  CHECK(mul(leaf, b).tape() == &tape);
  CHECK(tape.nodes() == 2);
}

TEST_CASE("only what needs a derivative is asked for one") {
  Tape tape;
  GradientSink gradients;
  const Var constant = values({3, 4}), leaf = tape.leaf(values({1, 2}));
  bool wants_constant = true, wants_leaf = false;
  const Var out = record("probe", constant.value(), {&constant, &leaf},
                         [&, c = constant.slot(), l = leaf.slot()](const Tensor& d, Backward& b) {
                           wants_constant = b.wants(c);
                           wants_leaf = b.wants(l);
                           b.add(c, d);  // offered all the same: dropped
                           b.add(l, d);
                         });
  int aside = 0;
  probe(leaf, [&](const Tensor&, Backward&) { ++aside; });
  tape.backward(sum(out), gradients);
  CHECK(wants_leaf);
  CHECK_FALSE(wants_constant);
  CHECK(aside == 0);  // a branch that does not lead to the output

  // Ops do heed it: a fresh [2^14] block for d_leaf, none for d_constant.
  constexpr std::int64_t n = 1 << 14;
  const Tensor x = Tensor::full({n}, 2, DType::f64), d = Tensor::full({n}, 1, DType::f64);
  const Var left = tape.leaf(Tensor::full({n}, 5, DType::f64));
  gradients.bind(left, Tensor::empty({n}, DType::f64));
  const Var product = mul(left, x);
  reset_peak(Device::cpu());
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  tape.backward(product, d, gradients);
  CHECK(memory_stats(Device::cpu()).peak_in_use - before <= n * 8);
  CHECK(gradients[left].to_vector<double>() == Doubles(n, 2.0));
}

TEST_CASE("values of another tape, of before a clear, and constants are refused") {
  Tape tape, other;
  GradientSink gradients;
  const Var a = tape.leaf(values({1})), b = other.leaf(values({1})), c = values({1});
  CHECK_THROWS_WITH_AS(gradients[a], "gradient: asked for before any backward pass", Error);
  CHECK_THROWS_WITH_AS(add(a, b), "add: inputs are on two tapes, wanted one", Error);
  CHECK_THROWS_WITH_AS(tape.backward(b, gradients), "backward: got a value of another tape", Error);
  CHECK_THROWS_WITH_AS(tape.backward(c, gradients),
                       "backward: got a constant, wanted a value on the tape", Error);
  CHECK_THROWS_WITH_AS(tape.leaf(Tensor()), "leaf: got an empty tensor", Error);

  const Var unused = tape.leaf(values({1})), middle = scale(a, 2);
  tape.backward(scale(middle, 2), values({1}), gradients);
  CHECK_THROWS_WITH_AS(gradients[c], "gradient: got a constant, wanted a value on the tape", Error);
  CHECK_THROWS_WITH_AS(gradients[b], "gradient: got a value of another tape", Error);
  const char* no_path =
      "gradient: no derivative for the value [1] in slot {}: wanted a leaf with a path to the "
      "output";
  CHECK_THROWS_WITH_AS(gradients[unused], fmt::format(fmt::runtime(no_path), 1).c_str(), Error);
  CHECK_THROWS_WITH_AS(gradients[middle], fmt::format(fmt::runtime(no_path), 2).c_str(), Error);

  tape.clear();
  CHECK(tape.nodes() == 0);
  const char* cleared = "got a value from before its tape was cleared";
  CHECK_THROWS_WITH_AS(scale(a, 2), (std::string("scale: ") + cleared).c_str(), Error);
  CHECK_THROWS_WITH_AS(tape.backward(a, gradients), (std::string("backward: ") + cleared).c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(gradients[a], (std::string("gradient: ") + cleared).c_str(), Error);
  const Var again = tape.leaf(values({1}));
  CHECK_THROWS_WITH_AS(add(again, a), (std::string("add: ") + cleared).c_str(), Error);
  CHECK_NOTHROW(scale(again, 2));
  CHECK_THROWS_WITH_AS(gradients[again],
                       "gradient: got a value from after the last backward pass's tape was "
                       "cleared, wanted a pass since",
                       Error);
}

TEST_CASE("a value of a tape that is gone is refused by one in its place") {
  alignas(Tape) std::byte place[sizeof(Tape)];
  Tape* tape = new (place) Tape;
  const Var before = tape->leaf(values({1}));
  GradientSink gradients;
  tape->backward(scale(before, 2), values({1}), gradients);
  tape->~Tape();
  tape = new (place) Tape;
  const Var after = tape->leaf(values({1}));
  CHECK(before.tape() == after.tape());
  CHECK_THROWS_AS(scale(before, 2), Error);
  CHECK_THROWS_AS(gradients[after], Error);
  CHECK_NOTHROW(scale(after, 2));
  tape->~Tape();
}

TEST_CASE("a tensor that was bound takes the derivative of no leaf of another shape") {
  Tape tape;
  GradientSink gradients;
  const Tensor x = Tensor::full({4, 2}, 1, DType::f64), into = Tensor::full({2, 3}, 7, DType::f64);
  gradients.bind(tape.leaf(into.clone()), into);
  tape.clear();
  // As many numbers, as a weight of dense, and by a cotangent of its own.
  const Var weight = tape.leaf(Tensor::full({3, 2}, 1, DType::f64));
  const char* message =
      "gradient: got a derivative [3, 2] for a leaf that was bound as [2, 3], wanted the same leaf "
      "in this pass";
  CHECK_THROWS_WITH_AS(
      tape.backward(sum(dense(x, weight, Tensor::zeros({3}, DType::f64))), gradients), message,
      ShapeError);
  CHECK_THROWS_WITH_AS(tape.backward(sum(scale(weight, 2)), gradients), message, ShapeError);
  CHECK(into.to_vector<double>() == std::vector<double>(6, 7.0));
}

TEST_CASE("an output that is no loss needs a cotangent, and one that fits") {
  Tape tape;
  GradientSink gradients;
  const Var x = tape.leaf(Tensor::zeros({2, 3}, DType::f64));
  CHECK_THROWS_WITH_AS(tape.backward(x, gradients),
                       "backward: got an output [2, 3] without its cotangent, wanted a loss [] or "
                       "[members]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(tape.backward(x, Tensor::zeros({3, 2}, DType::f64), gradients),
                       "backward: got d_output [3, 2], wanted [2, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(tape.backward(x, Tensor::zeros({2, 3}), gradients),
                       "backward: output is float64, d_output is float32: wanted one dtype",
                       ShapeError);
  CHECK_THROWS_WITH_AS(tape.backward(x, Tensor(), gradients),
                       "tensor: used after it was moved from, or before it was filled", Error);
  CHECK_NOTHROW(tape.backward(sum(x), gradients));
  if (cuda_device_count() > 0)
    CHECK_THROWS_AS(tape.backward(x, Tensor::zeros({2, 3}, DType::f64, Device::cuda()), gradients),
                    DeviceError);
}

TEST_CASE("an ensemble's losses are differentiated together, one each") {
  Tape tape;
  GradientSink gradients;
  const Var x = tape.leaf(Tensor::full({3, 2, 1}, 5, DType::f64));
  const Var loss = mse(x, Tensor::from(Doubles{1, 2, 3, 4, 5, 6}, {3, 2, 1}));
  CHECK(loss.shape() == Shape{3});
  tape.backward(loss, gradients);
  CHECK(gradients[x].to_vector<double>() == Doubles{4, 3, 2, 1, 0, -1});
}

TEST_CASE("a second backward pass gives the same bits") {
  Tape tape;
  GradientSink gradients;
  const Var x = normal({50, 7}, {1, 0}), w = tape.leaf(normal({9, 7}, {1, 1}));
  const Var b = tape.leaf(normal({9}, {1, 2}));
  const Var loss = mse(layer_norm(relu(dense(x, w, b))), normal({50, 9}, {1, 3}));
  tape.backward(loss, gradients);
  const auto d_w = gradients[w].to_vector<float>(), d_b = gradients[b].to_vector<float>();
  CHECK(*std::max_element(d_w.begin(), d_w.end()) > 0);
  tape.backward(loss, gradients);
  CHECK(gradients[w].to_vector<float>() == d_w);
  CHECK(gradients[b].to_vector<float>() == d_b);
}

TEST_CASE("a million nodes are differentiated without recursion") {
  constexpr int kNodes = 1'000'000;
  const std::clock_t start = std::clock();
  {
    Tape tape;
    GradientSink gradients;
    const Var x = tape.leaf(values({2}));
    Var y = x;
    for (int i = 0; i < kNodes; ++i) y = scale(y, i % 2 ? 0.5 : 2);
    CHECK(tape.nodes() == kNodes + 1);
    CHECK(y.value().item() == 2);
    reset_peak(Device::cpu());
    const std::size_t before = memory_stats(Device::cpu()).in_use;
    tape.backward(y, values({3}), gradients);
    CHECK(gradients[x].item() == 3);
    CHECK(memory_stats(Device::cpu()).peak_in_use - before <= 64 * 8);
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(seconds < 20);  // 0.5 s in Release, 5 s sanitized; a quadratic walk would take hours
}

TEST_CASE("a long chain of large tensors holds a few of them at a time") {
  constexpr std::int64_t n = 1 << 14;
  constexpr std::size_t kBytes = n * 8;
  const std::size_t start = memory_stats(Device::cpu()).in_use;
  Tape tape;
  {
    GradientSink gradients;
    const Var x = tape.leaf(Tensor::full({n}, 1, DType::f64));
    reset_peak(Device::cpu());
    Var y = x;
    for (int i = 0; i < 200; ++i) y = scale(y, 1.001);
    // x, y, the y to come; and going back d_y, d_x, and the result.
    CHECK(memory_stats(Device::cpu()).peak_in_use - start <= 3 * kBytes);
    const Tensor d_y = Tensor::full({n}, 1, DType::f64);
    tape.backward(y, d_y, gradients);
    CHECK(memory_stats(Device::cpu()).peak_in_use - start <= 6 * kBytes);
    CHECK(gradients[x].slice(0, 1).item() == doctest::Approx(std::pow(1.001, 200)).epsilon(1e-12));
  }
  CHECK(memory_stats(Device::cpu()).in_use == start);  // the tape itself keeps no value
}

TEST_CASE("after a pullback threw, the tape works as if nothing had happened") {
  Tape tape;
  GradientSink gradients;
  bool broken = true;
  const Var x = tape.leaf(values({1, 2}));
  const Var y = mul(x, x);
  const Var fragile = probe(y, [&](const Tensor&, Backward&) {
    if (broken) throw std::runtime_error("pullback");
  });
  const Var loss = sum(add(fragile, scale(y, 10)));  // a share for y is waiting when it throws
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  CHECK_THROWS_WITH_AS(tape.backward(loss, gradients), "pullback", std::runtime_error);
  CHECK(memory_stats(Device::cpu()).in_use == before);
  broken = false;
  tape.backward(loss, gradients);
  CHECK(gradients[x].to_vector<double>() == Doubles{22, 44});
}

TEST_CASE("clearing a tape frees what its pullbacks kept") {
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  Tape tape;
  { const Var x = mul(tape.leaf(values({1, 2})), values({3, 4})); }
  CHECK(memory_stats(Device::cpu()).in_use == before + 2 * 64);  // both factors, for each other
  tape.clear();
  CHECK(memory_stats(Device::cpu()).in_use == before);
}
