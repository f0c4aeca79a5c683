// Batch Norm on inputs that hurt, and what it does to samples. Its oracle and its derivatives:
// norm_cases.h.
#include "../../kernels/batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../kernels/arithmetic.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/transpose.h"
#include "../bits.h"

using namespace keel;

TEST_CASE("batch norm: columns of 1e30, constant ones, and one that is not a number") {
  const float nan = std::nanf("");
  const Tensor x = Tensor::from(
      std::vector<float>{1e30f, 5, nan, 1, -1e30f, 5, 2, 2, 1e30f, 5, 3, 1, -1e30f, 5, 4, 2},
      {4, 4});
  for (double eps : {0.0, 1e-5}) {
    Tape tape;
    const Var leaf = tape.leaf(x);
    const Var out = batch_norm(leaf, eps);
    GradientSink gradients;
    tape.backward(out, normal({4, 4}, {1, 0}), gradients);
    const std::vector<double> y = out.value().to_vector<double>();
    const std::vector<double> d_x = gradients[leaf].to_vector<double>();
    for (std::size_t i = 0; i < 4; ++i) {
      const double sign = i % 2 == 0 ? 1 : -1;
      CHECK(y[4 * i] == doctest::Approx(sign).epsilon(1e-6));
      CHECK(y[4 * i + 1] == 0);
      CHECK(std::isnan(y[4 * i + 2]));
      CHECK(y[4 * i + 3] == doctest::Approx(-sign / std::sqrt(1 + 4 * eps)).epsilon(1e-6));
      CHECK(std::isfinite(d_x[4 * i]));
      CHECK(std::isfinite(d_x[4 * i + 1]));
      CHECK(std::isfinite(d_x[4 * i + 3]));
    }
  }
}

TEST_CASE("batch norm: of no members nothing is left") {
  const Tensor none = Tensor::zeros({0, 4, 3}), gain = Tensor::full({3}, 1);
  CHECK(batch_norm(none).value().shape() == Shape{0, 4, 3});
  CHECK(batch_norm(none, gain, Tensor::zeros({3})).value().shape() == Shape{0, 4, 3});
}

TEST_CASE("batch norm: of one row all that is left is the bias") {
  const Tensor gain = Tensor::full({3}, 2), bias = Tensor::full({3}, 0.5);
  for (double value : batch_norm(normal({1, 3}, {1, 0}), gain, bias).value().to_vector<double>())
    CHECK(value == 0.5);
}

TEST_CASE("batch norm: is a layer norm of the transposed batch, to the bit") {
  const Tensor x = normal({3, 20, 7}, {1, 0});
  CHECK(same_bits(batch_norm(x, 1e-3).value(), transpose(layer_norm(transpose(x), 1e-3)).value()));
}

TEST_CASE("batch norm: gain and bias may be one leaf, constants, or computed") {
  const Tensor x = normal({6, 3}, {1, 0}, 1, DType::f64);
  const Tensor start = normal({3}, {2, 0}, 1, DType::f64);
  const Tensor d_out = normal({6, 3}, {3, 0}, 1, DType::f64);
  const auto derivative = [&](auto f) {
    Tape tape;
    const Var leaf = tape.leaf(start);
    GradientSink gradients;
    tape.backward(f(leaf), d_out, gradients);
    return gradients[leaf].to_vector<double>();
  };
  const auto of_gain = derivative([&](const Var& w) { return batch_norm(x, w, start); });
  const auto of_bias = derivative([&](const Var& w) { return batch_norm(x, start, w); });
  const auto of_both = derivative([&](const Var& w) { return batch_norm(x, w, w); });
  const auto of_twice = derivative([&](const Var& w) { return batch_norm(x, scale(w, 2), start); });
  for (std::size_t j = 0; j < 3; ++j) {
    CHECK(of_both[j] == doctest::Approx(of_gain[j] + of_bias[j]).epsilon(1e-13));
    CHECK(of_twice[j] == doctest::Approx(2 * of_gain[j]).epsilon(1e-13));
  }
}

TEST_CASE("batch norm: no sample has a derivative of its own") {
  for (const bool affine : {false, true}) {
    Tape tape;
    const Var leaf = tape.leaf(normal({6, 3}, {1, 0}));
    const Var gain = tape.leaf(Tensor::full({3}, 1)), bias = tape.leaf(Tensor::zeros({3}));
    const Var out = affine ? batch_norm(leaf, gain, bias) : batch_norm(leaf);
    JacobianSink apart;
    CHECK_THROWS_WITH_AS(
        tape.backward(out, normal({6, 3}, {2, 0}), apart),
        "transpose: got a sink that keeps samples apart, wanted one that adds them "
        "up: where rows become columns, as in a Batch Norm, no sample is by itself",
        Error);
  }
}
