#include "../../ntk/certificate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "../../core/random.h"
#include "../../ntk/empirical_kernel.h"
#include "../message_of.h"

namespace keel {
namespace {

constexpr const char* kBounded = "dense(32) layernorm relu dense(32) relu dense(1)";
constexpr const char* kUnbounded = "dense(32) relu dense(32) relu dense(1)";

struct Problem {
  explicit Problem(const char* spec, double ridge = 0.01) {
    kernel = std::make_shared<InfiniteKernel>(spec, 2);
    x = normal({12, 2}, {1, 0}, 1, DType::f64);
    std::vector<double> values = x.to_vector<double>(), targets;
    for (std::size_t i = 0; i < values.size(); i += 2) {
      targets.push_back(std::sin(3 * values[i]) + values[i + 1]);
      targets.push_back(2);
    }
    y = Tensor::from(targets, {12, 2});
    RegressionOptions options;
    options.ridge.absolute = ridge;
    options.factor = DType::f64;
    regression = std::make_unique<Regression>(kernel, x, y, options);
  }
  std::shared_ptr<InfiniteKernel> kernel;
  Tensor x, y;
  std::unique_ptr<Regression> regression;
};

TEST_CASE("certificate: holds its definition, term by term") {
  const Problem problem(kBounded);
  const double supremum = problem.kernel->supremum().value;
  for (std::int64_t target : {0, 1}) {
    const Certificate certificate = certify(*problem.regression, supremum, target);
    const auto y = problem.y.to_vector<double>();
    const auto alpha = problem.regression->alpha().to_vector<double>();
    double fit = 0, squares = 0, largest = 0;
    for (std::size_t i = static_cast<std::size_t>(target); i < y.size(); i += 2) {
      fit += y[i] * alpha[i];
      squares += alpha[i] * alpha[i];
      largest = std::max(largest, std::abs(y[i]));
    }
    CHECK(certificate.data_fit == doctest::Approx(fit));
    CHECK(certificate.rkhs == doctest::Approx(fit - 0.01 * squares));
    CHECK(certificate.bound == doctest::Approx(std::sqrt(supremum * fit)));
    // of an eigenvalue that is an estimate from above, within 1%
    const double eigenvalue = 0.99 * certificate.smallest_eigenvalue;
    CHECK(certificate.loose == doctest::Approx(std::sqrt(supremum * 12 / eigenvalue) * largest));
    CHECK(certificate.at(supremum) == doctest::Approx(certificate.bound));
    CHECK(certificate.tight <= certificate.bound);
    CHECK(certificate.bound <= certificate.loose);
    CHECK(certificate.bounded());
    const Certificate by_ridge = certify(*problem.regression, supremum, target, false);
    CHECK(by_ridge.smallest_eigenvalue == 0.01);
    CHECK(by_ridge.bound == certificate.bound);
    CHECK(by_ridge.loose >= certificate.loose);
  }
  CHECK(message_of([&] { certify(*problem.regression, 1, 2); }) ==
        "certify: got target 2, wanted one from 0 to 1");
  for (const std::int64_t target : {-1, 2})
    CHECK(message_of([&] { prediction_size(*problem.regression, target); }) ==
          fmt::format("prediction_size: got target {}, wanted one from 0 to 1", target));
  CHECK(message_of([] { exceed([](const Tensor&) { return std::vector<double>(); }, {1}, 2); }) ==
        "exceed: got 0 values for 1 point");
}

TEST_CASE("certificate: every form holds under a ridge that leaves next to nothing of y") {
  for (double ridge : {1e6, 1e12, 1e16, 1e20}) {
    CAPTURE(ridge);
    const Problem problem(kBounded, ridge);
    const Certificate certificate = certify(*problem.regression, problem.kernel->supremum().value);
    const std::vector<double> found = prediction_size(*problem.regression)(problem.x);
    for (double size : found) CHECK(size <= certificate.tight);
    CHECK(certificate.tight <= certificate.bound);
    CHECK(certificate.bound <= certificate.loose);
  }
}

TEST_CASE("certificate: random and gradient search do not break it, wherever the LN stands") {
  for (const char* spec : {kBounded, "dense(8) relu layernorm dense(8) relu dense(1)",
                           "dense(8) gelu dense(8) layernorm(affine=0) gelu dense(1)",
                           "dense(8) layernorm silu dense(8) layernorm silu dense(1)",
                           "dense(8) layernorm sigmoid dense(8) layernorm softplus dense(1)",
                           "dense(8) softplus layernorm dense(1)"}) {
    CAPTURE(spec);
    const Problem problem(spec);
    const Certificate certificate = certify(*problem.regression, problem.kernel->supremum().value);
    const Found found = search_largest(prediction_size(*problem.regression), 2, problem.x);
    CHECK(found.value <= certificate.tight * (1 + 1e-9));
    CHECK(found.value > 0.05 * certificate.bound);  // the search is no straw man
    CHECK(!exceed(prediction_size(*problem.regression), found.x, certificate.bound));
    // and the pointwise form at every point the search may have passed
    const Tensor where = normal({200, 2}, {2, 0}, 30, DType::f64);
    const auto size = prediction_size(*problem.regression)(where);
    const auto theta = kernel_diagonal(*problem.kernel)(where);
    for (std::size_t i = 0; i < size.size(); ++i)
      CHECK(size[i] <= certificate.at(theta[i]) * (1 + 1e-9));
  }
}

TEST_CASE("certificate: without LN it is infinite, and a direction passes any number") {
  const Problem problem(kUnbounded);
  CHECK(!problem.kernel->supremum().bounded);
  const Certificate certificate = certify(*problem.regression, HUGE_VAL);
  CHECK(!certificate.bounded());
  CHECK(certificate.loose == HUGE_VAL);
  const RowFunction size = prediction_size(*problem.regression);
  const Found found = search_largest(size, 2, problem.x);
  for (double wanted : {1e3, 1e9, 1e30}) {
    const auto beyond = exceed(size, found.x, wanted);
    REQUIRE(beyond.has_value());
    CHECK(beyond->value > wanted);
    CHECK(size(Tensor::from(beyond->x, {1, 2}))[0] == beyond->value);
  }
  // What grows towards the origin is followed there; what does not grow, neither way.
  const RowFunction inverse = [](const Tensor& x) {
    const std::vector<double> at = x.to_vector<double>();
    return std::vector<double>{1 / std::hypot(at[0], at[1])};
  };
  const auto within = exceed(inverse, {3, 4}, 1e30);
  REQUIRE(within.has_value());
  CHECK(within->value > 1e30);
  CHECK(within->value <= 2e30);
  CHECK(within->x[1] / within->x[0] == doctest::Approx(4.0 / 3));
  CHECK(!exceed([](const Tensor&) { return std::vector<double>{1}; }, {3, 4}, 2));
  CHECK(message_of([&] {
          exceed(size, {0, 0}, 1);
        }) == "exceed: got the origin, wanted a direction");
}

TEST_CASE("certificate: targets of zero are predicted as zero, and bounded by it") {
  const auto kernel = std::make_shared<InfiniteKernel>(kBounded, 1);
  const Tensor x = Tensor::from(std::vector<double>{1, 2}, {2, 1});
  const Regression regression(kernel, x, Tensor::zeros({2, 1}, DType::f64));
  CHECK(certify(regression, kernel->supremum().value).bound == 0);
  CHECK(certify(regression, HUGE_VAL).bound == 0);
}

TEST_CASE("certificate: a net of finite width is bounded by its own kernel at every point") {
  NetOptions options;
  options.parameterisation = Parameterisation::ntk;
  options.dtype = DType::f64;
  const auto kernel = std::make_shared<EmpiricalKernel>(Net(kBounded, 2, options));
  const Tensor x = normal({10, 2}, {3, 0}, 1, DType::f64),
               y = normal({10, 1}, {4, 0}, 1, DType::f64);
  RegressionOptions ridge;
  ridge.ridge.absolute = 0.1;
  const Regression regression(kernel, x, y, ridge);
  const Certificate certificate = certify(regression, 1);
  const Tensor where = normal({100, 2}, {5, 0}, 100, DType::f64);
  const auto size = prediction_size(regression)(where);
  const auto theta = kernel_diagonal(*kernel)(where);
  for (std::size_t i = 0; i < size.size(); ++i)
    CHECK(size[i] <= certificate.at(theta[i]) * (1 + 1e-6));
}

TEST_CASE("certificate: two nearly parallel points without a ridge, whose Theta is rounded") {
  // The supremum of that very regression, by 50 digits: what rounding of Theta hides of it is more
  // than the solver's residual.
  constexpr double kExact = 40941379.4;
  const Tensor x = Tensor::from(std::vector<double>{0.05202897425988651, 0.6836861907765345,
                                                    0.05202894007557697, 0.6836861933779832},
                                {2, 2});
  const Tensor y = Tensor::from(std::vector<double>{1, -1}, {2, 1});
  const auto kernel = std::make_shared<InfiniteKernel>("dense(8) layernorm(affine=0) dense(1)", 2,
                                                       InfiniteKernelOptions{.sigma_b2 = 0});
  RegressionOptions options;
  options.factor = DType::f64;
  const Regression regression(kernel, x, y, options);
  const Certificate certificate = certify(regression, kernel->supremum().value, 0, false);
  CHECK(certificate.bound >= kExact);
  CHECK(certificate.tight >= kExact);
  CHECK(certificate.bound < 20 * kExact);
}

// Theta of "dense gelu layernorm(affine=0) dense" at two points of two features, by the formulas of
// docs/kernels.md in long double, and what is nearly 0 of nearly parallel points by differences.
struct GeluPair {
  using Real = long double;
  static constexpr Real kBias = 0.01L, kEps = 1e-5L, kPi = std::numbers::pi_v<Real>;
  const std::vector<double>& x;  // both, one behind the other

  Real theta(std::size_t i, std::size_t j) const {
    const Real from[] = {x[2 * i], x[2 * i + 1]};
    const Real step[] = {Real(x[2 * j]) - from[0], Real(x[2 * j + 1]) - from[1]};
    const Real wedge = from[0] * step[1] - from[1] * step[0];
    const Real away = step[0] * step[0] + step[1] * step[1];
    const Real q = k(i, i), q2 = k(j, j), both = k(i, j);  // sigma_w2 / n0 = 1
    const Real apart = wedge * wedge + kBias * away;       // q q2 - both^2
    const Real a = q + 1, b = q2 + 1, root = std::sqrt(apart + q + q2 + 1);
    const Real r = 1 / a + 1 / b, sure = (kPi - std::atan2(root, both)) / (2 * kPi);
    const Real value = both * sure + (apart + both * both * r) / (2 * kPi * root);
    const Real slope = sure + both / root * (r + 1 / (root * root)) / (2 * kPi);
    const Real scale = 1 / (deviation(i) * deviation(j));
    return 2 * both * slope * scale + 2 * (value - mean(q) * mean(q2)) * scale + kBias;
  }

 private:
  Real k(std::size_t i, std::size_t j) const {
    return Real(x[2 * i]) * x[2 * j] + Real(x[2 * i + 1]) * x[2 * j + 1] + kBias;
  }
  static Real mean(Real q) { return q / std::sqrt(2 * kPi * (q + 1)); }
  Real deviation(std::size_t i) const {
    const Real q = k(i, i), root = std::sqrt(2 * q + 1), r = 2 / (q + 1);
    const Real sure = (kPi - std::atan2(root, q)) / (2 * kPi);
    return std::sqrt(q * sure + q * q * r / (2 * kPi * root) - mean(q) * mean(q) + kEps);
  }
};

TEST_CASE("certificate: gelu far out is relu, and nearly parallel points lose as much") {
  // Inputs as long as an ordinary feature that is not standardised; some pairs are refused.
  double worst = 0;
  for (int pair = 0; pair < 40; ++pair) {
    const std::vector<double> step =
        normal({2}, {static_cast<std::uint64_t>(pair), 7}, 1, DType::f64).to_vector<double>();
    const std::vector<double> x = {12358.95, 1843.04, 12358.95 + 1e-3 * step[0],
                                   1843.04 + 1e-3 * step[1]};
    const auto kernel =
        std::make_shared<InfiniteKernel>("dense(8) gelu layernorm(affine=0) dense(1)", 2);
    const Tensor inputs = Tensor::from(x, {2, 2}),
                 y = Tensor::from(std::vector<double>{1, -1}, {2, 1});
    const GeluPair exact{x};
    CHECK(static_cast<double>(exact.theta(0, 0)) ==
          doctest::Approx(kernel->diag(*kernel->points(inputs)).data<double>()[0]).epsilon(1e-12));
    RegressionOptions options;
    options.factor = DType::f64;
    std::optional<Regression> fit;
    try {
      fit.emplace(kernel, inputs, y, options);
    } catch (const Error&) {
      continue;
    }
    const Regression& regression = *fit;
    const Certificate certificate = certify(regression, kernel->supremum().value, 0, false);
    const std::vector<double> alpha = regression.alpha().to_vector<double>();
    long double norm = 0;
    for (std::size_t i : {0, 1})
      for (std::size_t j : {0, 1}) norm += exact.theta(i, j) * alpha[i] * alpha[j];
    CHECK(certificate.rkhs >= static_cast<double>(norm));
    CHECK(certificate.data_fit + certificate.slack >= static_cast<double>(norm));
    worst = std::max(worst, static_cast<double>(norm) / certificate.data_fit);
  }
  CHECK(worst > 0.9);  // some were solved; here without the slack the bound would not hold of three
}

}  // namespace
}  // namespace keel
