#include "../../core/sink.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "../../core/random.h"
#include "../../core/tape.h"
#include "../../kernels/arithmetic.h"
#include "../../kernels/dense.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/relu.h"
#include "../../kernels/sum.h"

using namespace keel;

using Doubles = std::vector<double>;
using Function = std::function<Var(const std::vector<Var>&)>;

static Tensor draw(Shape shape, std::uint64_t stream) {
  return normal(shape, {17, stream}, 1, DType::f64);
}

// [members, rows, cols] for a matrix with or without members.
static Shape as_cube(const Tensor& x) { return {x.shape().members(), x.size(-2), x.size(-1)}; }

// Adds sample k's share of a factor to d_leaf, laid out as the leaf is: [members, p] or [p].
static void add_sample(const JacobianSink::Factor& factor, std::int64_t k, Doubles& d_leaf) {
  if (const Outer* f = std::get_if<Outer>(&factor.block)) {
    const Shape delta = as_cube(f->delta), input = as_cube(f->input);
    const auto d = f->delta.to_vector<double>(), a = f->input.to_vector<double>();
    REQUIRE(delta[0] * delta[2] * input[2] == static_cast<std::int64_t>(d_leaf.size()));
    for (std::int64_t s = 0; s < delta[0]; ++s)
      for (std::int64_t o = 0; o < delta[2]; ++o)
        for (std::int64_t i = 0; i < input[2]; ++i)
          d_leaf[(s * delta[2] + o) * input[2] + i] +=
              f->scale * d[(s * delta[1] + k) * delta[2] + o] *
              a[((input[0] > 1 ? s : 0) * input[1] + k) * input[2] + i];
    return;
  }
  const Rows& f = std::get<Rows>(factor.block);
  const Shape rows = as_cube(f.g);
  const auto g = f.g.to_vector<double>();
  REQUIRE(rows[0] * rows[2] == static_cast<std::int64_t>(d_leaf.size()));
  for (std::int64_t s = 0; s < rows[0]; ++s)
    for (std::int64_t p = 0; p < rows[2]; ++p)
      d_leaf[s * rows[2] + p] += f.scale * g[(s * rows[1] + k) * rows[2] + p];
}

// Each sample's Jacobian, from the factors of one backward pass with a cotangent of ones, against
// one backward pass per sample with a one-hot cotangent. f: leaves -> [n, 1] or [S, n, 1].
static void check_jacobian(const std::vector<Tensor>& parameters, const Function& f) {
  Tape tape;
  std::vector<Var> leaves;
  for (const Tensor& parameter : parameters) leaves.push_back(tape.leaf(parameter));
  const Var out = f(leaves);
  JacobianSink jacobian;
  tape.backward(out, Tensor::full(out.shape(), 1, DType::f64), jacobian);

  const std::int64_t n = out.value().size(-2);
  double worst = 0, largest = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    Doubles one_hot(static_cast<std::size_t>(out.shape().elements()));
    for (std::size_t s = 0; s < one_hot.size(); s += n) one_hot[s + k] = 1;
    GradientSink gradients;
    tape.backward(out, Tensor::from(one_hot, out.shape()), gradients);
    for (const Var& leaf : leaves) {
      const auto wanted = gradients[leaf].to_vector<double>();
      Doubles got(wanted.size());
      for (const JacobianSink::Factor& factor : jacobian.factors())
        if (factor.leaf == leaf.slot()) add_sample(factor, k, got);
      for (std::size_t i = 0; i < got.size(); ++i) {
        worst = max_or_nan(worst, std::abs(got[i] - wanted[i]));
        largest = std::max(largest, std::abs(wanted[i]));
      }
    }
  }
  CHECK(largest > 0.1);
  CHECK(worst < 1e-12 * largest);
}

TEST_CASE("factors of dense, layer_norm, relu, dense are each sample's Jacobian") {
  const Tensor x = draw({40, 3}, 0);
  const std::vector<Tensor> parameters = {draw({8, 3}, 1), draw({8}, 2),    draw({8}, 3),
                                          draw({8}, 4),    draw({1, 8}, 5), draw({1}, 6)};
  SUBCASE("op by op") {
    check_jacobian(parameters, [&](const std::vector<Var>& p) {
      const Var hidden =
          relu(layer_norm(dense(x, p[0], p[1], {.weight = 0.7, .bias = 0.3}), p[2], p[3]));
      return dense(hidden, p[4], p[5], {.weight = 0.5, .bias = 2});
    });
  }
  SUBCASE("fused") {
    check_jacobian(parameters, [&](const std::vector<Var>& p) {
      return dense(layer_norm_relu(dense(x, p[0], p[1]), p[2], p[3]), p[4], p[5]);
    });
  }
}

TEST_CASE("factors of an ensemble are each member's and sample's Jacobian") {
  const std::vector<Tensor> parameters = {draw({2, 8, 3}, 1), draw({2, 8}, 2),    draw({2, 8}, 3),
                                          draw({2, 8}, 4),    draw({2, 1, 8}, 5), draw({2, 1}, 6)};
  for (const Tensor& x : {draw({5, 3}, 7), draw({2, 5, 3}, 8)})  // one input for all, or one each
    check_jacobian(parameters, [&](const std::vector<Var>& p) {
      return dense(layer_norm_relu(dense(x, p[0], p[1]), p[2], p[3]), p[4], p[5]);
    });
}

TEST_CASE("a leaf used twice in a sample has several factors, which add up") {
  const Tensor x = draw({6, 4}, 0);
  const std::vector<Tensor> parameters = {draw({4, 4}, 1), draw({4}, 2),    draw({4}, 3),
                                          draw({4}, 4),    draw({1, 4}, 5), draw({1}, 6)};
  const Function recurrent = [&](const std::vector<Var>& p) {
    Var h = x;
    for (int step = 0; step < 3; ++step) h = layer_norm_relu(dense(h, p[0], p[1]), p[2], p[3]);
    return dense(h, p[4], p[5]);
  };
  check_jacobian(parameters, recurrent);

  Tape tape;
  std::vector<Var> leaves;
  for (const Tensor& parameter : parameters) leaves.push_back(tape.leaf(parameter));
  const Var out = recurrent(leaves);
  JacobianSink jacobian;
  for (int pass = 0; pass < 2; ++pass) {  // a second pass starts over
    tape.backward(out, Tensor::full(out.shape(), 1, DType::f64), jacobian);
    CHECK(jacobian.factors().size() == 3 * 4 + 2);
  }
  CHECK(std::count_if(jacobian.factors().begin(), jacobian.factors().end(), [&](const auto& f) {
          return f.leaf == leaves[0].slot() && std::holds_alternative<Outer>(f.block);
        }) == 3);
}

TEST_CASE("derivatives that do not split by sample are refused") {
  constexpr const char* kMessage =
      "jacobian: the derivative of this value does not split by sample, wanted a parameter that "
      "dense, add_bias, prelu, layer_norm or rms_norm uses directly";
  const Tensor x = draw({5, 3}, 0), w = draw({1, 3}, 1), b = draw({1}, 2), ones = draw({5, 1}, 3);
  const auto differentiate = [&](const Function& f, const Tensor& parameter) {
    Tape tape;
    JacobianSink jacobian;
    tape.backward(f({tape.leaf(parameter)}), ones, jacobian);
  };
  using Leaves = const std::vector<Var>&;
  // An input; a weight and a bias that are computed on the tape.
  CHECK_THROWS_WITH_AS(differentiate([&](Leaves p) { return dense(p[0], w, b); }, x), kMessage,
                       Error);
  CHECK_THROWS_WITH_AS(differentiate([&](Leaves p) { return dense(x, scale(p[0], 2), b); }, w),
                       kMessage, Error);
  CHECK_THROWS_WITH_AS(differentiate([&](Leaves p) { return dense(x, w, scale(p[0], 2)); }, b),
                       kMessage, Error);
  CHECK_THROWS_WITH_AS(differentiate([&](Leaves p) { return mul(p[0], p[0]); }, ones), kMessage,
                       Error);
  CHECK_NOTHROW(differentiate([&](Leaves p) { return dense(x, p[0], b); }, w));
}

TEST_CASE("cotangents in a stack are whole ones") {
  const Tensor x = draw({2, 3}, 0), b = draw({1}, 2);
  Tape tape;
  const Var out = dense(x, tape.leaf(draw({1, 3}, 1)), b);
  JacobianSink jacobian;
  CHECK_NOTHROW(tape.backward(out, draw({4, 1}, 3), jacobian));
  for (const std::int64_t rows : {1, 3, 5})
    CHECK_THROWS_AS(tape.backward(out, draw({rows, 1}, 3), jacobian), ShapeError);
}

TEST_CASE("a gradient stays when the cotangent that became it is written to") {
  Tape tape;
  GradientSink gradients;
  const Var leaf = tape.leaf(draw({3}, 0));
  const Tensor d = draw({3}, 1);
  const Doubles wanted = d.to_vector<double>();
  tape.backward(leaf, d, gradients);
  fill(d, 0);
  CHECK(gradients[leaf].to_vector<double>() == wanted);
}

TEST_CASE("the gradient of a weight computed on the tape flows on to its leaf") {
  const Tensor x = draw({7, 3}, 0), w = draw({2, 3}, 1), b = draw({2}, 2);
  Tape tape;
  GradientSink gradients;
  const Var plain = tape.leaf(w), inner = tape.leaf(w), bias = tape.leaf(b), late = tape.leaf(b);
  tape.backward(sum(add(dense(x, plain, bias), dense(x, scale(inner, 3), scale(late, 5)))),
                gradients);
  const auto d_plain = gradients[plain].to_vector<double>(),
             d_bias = gradients[bias].to_vector<double>();
  const auto d_inner = gradients[inner].to_vector<double>(),
             d_late = gradients[late].to_vector<double>();
  for (std::size_t i = 0; i < d_plain.size(); ++i)
    CHECK(d_inner[i] == doctest::Approx(3 * d_plain[i]));
  CHECK(d_bias == Doubles{7, 7});
  CHECK(d_late == Doubles{35, 35});
}

TEST_CASE("a bound tensor receives the derivative, and zeros where no path leads to its leaf") {
  const Tensor x = draw({7, 3}, 0), w = draw({2, 3}, 1), b = draw({2}, 2);
  Tape tape;
  GradientSink bound, free;
  const Var weight = tape.leaf(w), bias = tape.leaf(b), unused = tape.leaf(b);
  const Var other = tape.leaf(draw({7, 2}, 3));
  const Tensor into_w = Tensor::full({2, 3}, 99, DType::f64),
               into_b = Tensor::full({2}, 99, DType::f64);
  const Tensor into_unused = Tensor::full({2}, 99, DType::f64);
  const Tensor into_other = Tensor::full({7, 2}, 99, DType::f64);
  bound.bind(weight, into_w);
  bound.bind(bias, into_b);
  bound.bind(unused, into_unused);
  bound.bind(other, into_other);
  // The weight gathers factors (Outer) and a plain cotangent (scale) in one place.
  const Var z = mul(dense(x, weight, bias), other);
  const Var out = add(sum(z), sum(scale(weight, 0.5)));
  tape.backward(out, free);
  for (int pass = 0; pass < 2; ++pass) {  // the second starts over rather than adding
    tape.backward(out, bound);
    CHECK(into_w.to_vector<double>() == free[weight].to_vector<double>());
    CHECK(into_b.to_vector<double>() == free[bias].to_vector<double>());
    CHECK(into_other.to_vector<double>() == free[other].to_vector<double>());
    CHECK(into_unused.to_vector<double>() == Doubles{0, 0});
  }
  CHECK(bound[weight].shares_storage(into_w));
  CHECK(bound[unused].shares_storage(into_unused));
  CHECK_THROWS_AS(free[unused], Error);
  const auto d_z = other.value().to_vector<double>(), a = x.to_vector<double>();
  double wanted = 0.5;
  for (int k = 0; k < 7; ++k) wanted += d_z[2 * k] * a[3 * k];
  CHECK(into_w[0][0].item() == doctest::Approx(wanted).epsilon(1e-13));
}

TEST_CASE("only a leaf can be bound, to a tensor like itself") {
  Tape tape;
  GradientSink gradients;
  const Var leaf = tape.leaf(draw({2, 3}, 0)), middle = scale(leaf, 2);
  CHECK_THROWS_WITH_AS(gradients.bind(draw({2}, 0), draw({2}, 1)),
                       "gradient: got a constant, wanted a leaf of a tape", Error);
  CHECK_THROWS_WITH_AS(gradients.bind(leaf, draw({3, 2}, 1)),
                       "gradient: got [3, 2] for the derivative of [2, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(gradients.bind(leaf, Tensor::zeros({2, 3})),
                       "gradient: leaf is float64, into is float32: wanted one dtype", ShapeError);
  CHECK_THROWS_WITH_AS(gradients.bind(middle, draw({2, 3}, 1)),
                       "gradient: got the result of an op, wanted a leaf of a tape", Error);
  CHECK_NOTHROW(gradients.bind(leaf, draw({2, 3}, 1)));

  const Var late = tape.leaf(draw({2}, 0));
  gradients.bind(late, draw({2}, 1));
  tape.clear();
  CHECK_THROWS_WITH_AS(gradients.bind(late, draw({2}, 1)),
                       "gradient: got a value from before its tape was cleared", Error);
  Var out = tape.leaf(draw({2, 3}, 0));
  for (int i = 0; i < 2; ++i) out = scale(out, 2);  // where `late` was, there is an op now
  CHECK_THROWS_WITH_AS(tape.backward(sum(out), gradients),
                       "gradient: slot 2 was bound as a leaf, wanted one there in this pass too",
                       Error);
}
