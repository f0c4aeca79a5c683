// keel's own float32 exp, tanh and normal distribution against the standard library's
// double.
#include "../../kernels/math.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "../../keel.h"

using namespace keel;

TEST_CASE("exponential: 2e-7 relative over its range, 0 and infinity beyond") {
  double worst = 0;
  for (double x = -87; x < 88.3; x += 0.0137) {
    const float at = static_cast<float>(x);
    worst = max_or_nan(worst, std::abs(exponential(at) / std::exp(static_cast<double>(at)) - 1));
  }
  CHECK(worst < 2e-7);
  CHECK(exponential(0.0f) == 1.0f);
  CHECK(exponential(-1e30f) == 0.0f);
  CHECK(std::isinf(exponential(1e30f)));
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("silu: where beta x is more than a float its derivative is 0 or 1") {
  const std::vector<float> values = {-3e38f, -4e36f, 4e36f, 3e38f};
  Tape tape;
  GradientSink gradients;
  const Var x = tape.leaf(Tensor::from(values, {4}));
  const Var y = silu(x, 100);
  tape.backward(y, Tensor::full({4}, 1), gradients);
  CHECK(y.value().to_vector<float>() == std::vector<float>{0, 0, 4e36f, 3e38f});
  CHECK(gradients[x].to_vector<float>() == std::vector<float>{0, 0, 1, 1});
}

TEST_CASE("normal_tail: 4.5e-7 relative, and what x^2 is rounded by") {
  double worst = 0, worst_density = 0;
  for (double x = 0; x < 13; x += 0.0019) {
    const float at = static_cast<float>(x);
    const double size = at;
    const NormalTail<float> got = normal_tail(at);
    const auto off = [&](double value, double exact) {
      return std::abs(value / exact - 1) / (1 + size * size);
    };
    worst = max_or_nan(worst, off(got.above, std::erfc(size / std::sqrt(2.0)) / 2));
    worst_density =
        max_or_nan(worst_density,
                   off(got.density, std::exp(-size * size / 2) / std::sqrt(2 * std::numbers::pi)));
  }
  CHECK(worst < 4.5e-7);
  CHECK(worst_density < 2e-7);
  CHECK(normal_tail(0.0f).above == doctest::Approx(0.5).epsilon(2e-7));
  for (float far : {1e30f, std::numeric_limits<float>::infinity()}) {
    CHECK(normal_tail(far).above == 0);
    CHECK(normal_tail(far).density == 0);
  }
  CHECK(std::isnan(normal_tail(std::numeric_limits<float>::quiet_NaN()).above));
}

TEST_CASE("gelu: values and derivatives far out") {
  const float infinite = std::numeric_limits<float>::infinity();
  for (DType dtype : {DType::f32, DType::f64}) {
    Tape tape;
    const Var x =
        tape.leaf(Tensor::from(std::vector<float>{-1e30f, -100, 100, 1e30f}, {4}).to(dtype));
    const Var y = gelu(x);
    CHECK(y.value().to_vector<float>() == std::vector<float>{0, 0, 100, 1e30f});
    GradientSink gradients;
    tape.backward(y, Tensor::full({4}, 1, dtype), gradients);
    CHECK(gradients[x].to_vector<float>() == std::vector<float>{0, 0, 1, 1});
    CHECK(gelu(Tensor::full({1}, infinite, dtype)).value().item() == infinite);
  }
}

TEST_CASE("hyperbolic_tangent: 3e-7 relative, at any size") {
  double worst = 0;
  for (double log_x = -80; log_x < 6; log_x += 0.00037)
    for (double sign : {-1.0, 1.0}) {
      const float at = static_cast<float>(sign * std::exp(log_x));
      worst = max_or_nan(worst,
                         std::abs(hyperbolic_tangent(at) / std::tanh(static_cast<double>(at)) - 1));
    }
  CHECK(worst < 3e-7);
  CHECK(hyperbolic_tangent(0.0f) == 0.0f);
  CHECK(hyperbolic_tangent(1e30f) == 1.0f);
  CHECK(hyperbolic_tangent(-std::numeric_limits<float>::infinity()) == -1.0f);
  CHECK(std::isnan(hyperbolic_tangent(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("log_of_one_plus: 2e-7 relative from 0 to 1") {
  double worst = 0;
  for (double log_x = -80; log_x <= 0; log_x += 0.00037) {
    const float at = static_cast<float>(std::exp(log_x));
    worst =
        max_or_nan(worst, std::abs(log_of_one_plus(at) / std::log1p(static_cast<double>(at)) - 1));
  }
  CHECK(worst < 2e-7);
  CHECK(log_of_one_plus(0.0f) == 0.0f);
  CHECK(log_of_one_plus(1.0f) == doctest::Approx(0.69314718));
  CHECK(std::isnan(log_of_one_plus(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("exponential_less_one: 2e-7 relative below 0, however near") {
  double worst = 0;
  for (double log_x = -80; log_x <= 5; log_x += 0.00037) {
    const float at = static_cast<float>(-std::exp(log_x));
    worst = max_or_nan(
        worst, std::abs(exponential_less_one(at) / std::expm1(static_cast<double>(at)) - 1));
  }
  CHECK(worst < 2e-7);
  CHECK(exponential_less_one(0.0f) == 0.0f);
  CHECK(exponential_less_one(-1e-40f) == -1e-40f);
  CHECK(exponential_less_one(-100.0f) == -1.0f);
  CHECK(exponential_less_one(-std::numeric_limits<float>::infinity()) == -1.0f);
  CHECK(std::isnan(exponential_less_one(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("elu: values and derivatives at the ends of the number range") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> ends{-infinite, -1e30f, -100, -1e-30f, 0, 1e-30f, 1e30f, infinite, nan};
  for (const float alpha : {1.0f, 0.25f, 2.0f}) {
    const std::vector<float> values{-alpha, -alpha, -alpha, -alpha * 1e-30f,
                                    0,      1e-30f, 1e30f,  infinite},
        slopes{0, 0, 0, alpha, alpha, 1, 1, 1};
    for (DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(alpha);
      Tape tape;
      const Var x = tape.leaf(Tensor::from(ends, {9}).to(dtype)), y = elu(x, alpha);
      GradientSink gradients;
      tape.backward(sum(y), gradients);
      const std::vector<float> value = y.value().to_vector<float>(),
                               d = gradients[x].to_vector<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(i);
        CHECK(value[i] == values[i]);
        CHECK(d[i] == slopes[i]);
      }
      CHECK(std::isnan(value[8]));
      CHECK(std::isnan(d[8]));
    }
  }
}

TEST_CASE("sigmoid and softplus: values and derivatives at the ends of the number range") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> ends{-infinite, -1e30f, -100, 0, 100, 1e30f, infinite, nan};
  for (DType dtype : {DType::f32, DType::f64})
    for (bool sigmoids : {true, false}) {
      CAPTURE(sigmoids);
      Tape tape;
      const Var x = tape.leaf(Tensor::from(ends, {8}).to(dtype));
      const Var y = sigmoids ? sigmoid(x) : softplus(x);
      GradientSink gradients;
      tape.backward(sum(y), gradients);
      const std::vector<double> value = y.value().to_vector<double>(),
                                d = gradients[x].to_vector<double>();
      for (std::size_t i = 0; i < 7; ++i) {
        CAPTURE(i);
        const double step = i < 3 ? 0 : i > 3 ? 1 : 0.5;
        const double of_softplus = i < 3 ? 0 : i > 3 ? ends[i] : 0.6931471805599453;
        const double wanted = sigmoids ? step : of_softplus;
        CHECK((value[i] == wanted || value[i] == doctest::Approx(wanted).epsilon(1e-6)));
        CHECK(d[i] == doctest::Approx(sigmoids ? (i == 3 ? 0.25 : 0) : step).epsilon(1e-6));
      }
      CHECK(std::isnan(value[7]));
      CHECK(std::isnan(d[7]));
    }
}

// 0 far below 0, and x far above it.
constexpr Var (*kHinges[])(const Var&) = {&relu, &gelu, &gelu_by_tanh,
                                          [](const Var& x) { return silu(x); },
                                          [](const Var& x) { return silu(x, 100); }};

TEST_CASE("activations at the ends of the number range") {
  const Tensor x = Tensor::from(std::vector<float>{-1e30f, -100, 0, 100, 1e30f}, {5});
  for (Var (*op)(const Var&) : kHinges) {
    const std::vector<float> values = op(x).value().to_vector<float>();
    CHECK(values[0] == 0);
    CHECK(values[1] == doctest::Approx(0));
    CHECK(values[2] == 0);
    CHECK(values[3] == doctest::Approx(100));
    CHECK(values[4] == doctest::Approx(1e30f));
  }
}

TEST_CASE("leaky_relu and tanh: values and derivatives at the ends of the number range") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (bool leaky : {true, false}) {
    Tape tape;
    const Var x =
        tape.leaf(Tensor::from(std::vector<float>{-1e30f, -100, 0, 100, 1e30f, nan}, {6}));
    const Var y = leaky ? leaky_relu(x, 0.25) : tanh(x);
    GradientSink gradients;
    tape.backward(sum(y), gradients);
    const std::vector<double> value = y.value().to_vector<double>(),
                              d = gradients[x].to_vector<double>();
    const double sizes[] = {1e30, 100, 0, 100, 1e30};
    for (std::size_t i = 0; i < 5; ++i) {
      CAPTURE(i);
      const double sign = i < 2 ? -1 : i > 2 ? 1 : 0;
      CHECK(value[i] == doctest::Approx(leaky ? (sign < 0 ? -0.25 : sign) * sizes[i] : sign));
      CHECK(d[i] == (leaky ? (sign > 0 ? 1 : 0.25) : sign == 0 ? 1 : 0));  // at 0 as below it
    }
    CHECK(std::isnan(value[5]));
  }
  // The slope of numbers so small that what is made of them is 0.
  Tape tape;
  const Var tiny = tape.leaf(Tensor::from(std::vector<float>{-1e-40f}, {1}));
  GradientSink gradients;
  tape.backward(sum(leaky_relu(tiny, 1e-20)), gradients);
  CHECK(gradients[tiny].to_vector<double>()[0] == doctest::Approx(1e-20));
}

TEST_CASE("prelu: the derivative at 0 is the slope, as below it") {
  for (const std::int64_t slopes : {1, 3}) {
    CAPTURE(slopes);
    Tape tape;
    const Var x = tape.leaf(Tensor::zeros({2, 3})), slope = tape.leaf(Tensor::full({slopes}, 0.25));
    GradientSink gradients;
    tape.backward(sum(prelu(x, slope)), gradients);
    CHECK(gradients[x].to_vector<float>() == std::vector<float>(6, 0.25f));
  }
}

TEST_CASE("a NaN stays one through every activation, and keeps to its place") {
  constexpr Var (*kAll[])(const Var&) = {
      &relu,
      &gelu,
      &gelu_by_tanh,
      &tanh,
      &selu,
      &sigmoid,
      &softplus,
      kHinges[3],
      kHinges[4],
      [](const Var& x) { return elu(x, 0.5); },
      [](const Var& x) { return leaky_relu(x, 0.25); },
      [](const Var& x) { return prelu(x, Tensor::full({1}, 0.25, x.value().dtype())); },
      [](const Var& x) { return prelu(x, Tensor::full({3}, 0.25, x.value().dtype())); }};
  const std::vector<float> values{-1, std::numeric_limits<float>::quiet_NaN(), 1};
  for (DType dtype : {DType::f32, DType::f64})
    for (std::size_t i = 0; i < std::size(kAll); ++i) {
      CAPTURE(i);
      const auto got = kAll[i](Tensor::from(values, {1, 3}).to(dtype)).value().to_vector<double>();
      CHECK(std::isfinite(got[0]));
      CHECK(std::isnan(got[1]));
      CHECK(std::isfinite(got[2]));
    }
}

TEST_CASE("derivatives of activations are finite at the ends of the number range") {
  for (Var (*op)(const Var&) : kHinges) {
    Tape tape;
    const Var x = tape.leaf(Tensor::from(std::vector<float>{-1e30f, -100, 100, 1e30f}, {4}));
    GradientSink gradients;
    tape.backward(sum(op(x)), gradients);
    const std::vector<double> d = gradients[x].to_vector<double>();
    CHECK(d[0] == doctest::Approx(0));
    CHECK(d[1] == doctest::Approx(0));
    CHECK(d[2] == doctest::Approx(1));
    CHECK(d[3] == doctest::Approx(1));
  }
}
