// Training dynamics against the loop they replace, and against kernel regression at their end.
#include "../../ntk/training_dynamics.h"
#include "../difference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../ntk/regression.h"
#include "../message_of.h"
#include "closed_kernel.h"

using namespace keel;
using test::ClosedKernel, test::draw_points;

namespace {

using std::int64_t;

constexpr double kForever = std::numeric_limits<double>::infinity();

struct DrawnProblem {
  std::shared_ptr<ClosedKernel> kernel = std::make_shared<ClosedKernel>(2, 0.5, 3);
  Tensor x = draw_points(25, 2, 1), y = draw_points(25, 2, 2), test = draw_points(6, 2, 3);
  TrainingDynamics dynamics{kernel, x, y};
};

/// Gradient descent on f at the training points and at `test`, step by step.
Tensor descend(const DrawnProblem& p, int steps, double step_size) {
  const int64_t n = 25, m = 6, k = 2;
  std::vector<double> f(n * k, 0.0), g(m * k, 0.0);
  const std::vector<double> y = p.y.to_vector<double>();
  for (int step = 0; step < steps; ++step) {
    std::vector<double> error(n * k);
    for (std::size_t i = 0; i < error.size(); ++i) error[i] = f[i] - y[i];
    for (int64_t l = 0; l < n; ++l)
      for (int64_t j = 0; j < k; ++j) {
        for (int64_t i = 0; i < n; ++i)
          f[i * k + j] -= step_size * p.kernel->entry(p.x, i, p.x, l) * error[l * k + j];
        for (int64_t i = 0; i < m; ++i)
          g[i * k + j] -= step_size * p.kernel->entry(p.test, i, p.x, l) * error[l * k + j];
      }
  }
  f.insert(f.end(), g.begin(), g.end());
  return Tensor::from(f, {n + m, k});
}

}  // namespace

TEST_CASE("before training f is 0, and its covariance that of the initialisation") {
  const DrawnProblem p;
  const ClosedKernel nngp(2, 2);
  const Tensor initial = Tensor::empty({6, 6}, DType::f64);
  nngp.gram(*nngp.points(p.test), *nngp.points(p.test), initial);
  for (const TrainingTime& time : {TrainingTime::flow(0), TrainingTime::descent(0, 1e-3)}) {
    for (double v : p.dynamics.predict(p.test, time).to_vector<double>()) CHECK(v == 0);
    for (double v : p.dynamics.predict_training(time).to_vector<double>()) CHECK(v == 0);
    CHECK(test::largest_difference(p.dynamics.ensemble_covariance(nngp, p.test, time), initial) ==
          0);
  }
}

TEST_CASE("after training for ever f is that of kernel regression") {
  const DrawnProblem p;
  const ClosedKernel nngp(2, 2);
  const Regression solved(p.kernel, p.x, p.y, {.factor = DType::f64});
  CHECK(solved.smallest_eigenvalue() ==
        doctest::Approx(p.dynamics.eigenvalues().front()).epsilon(0.01));
  const double stable = p.dynamics.largest_stable_step();
  for (const TrainingTime& time : {TrainingTime::flow(kForever), TrainingTime::flow(1e12),
                                   TrainingTime::descent(int64_t{1} << 40, stable / 3)}) {
    CHECK(test::largest_difference(p.dynamics.predict_training(time), p.y) < 1e-9);
    CHECK(test::largest_difference(p.dynamics.predict(p.test, time), solved.predict(p.test)) <
          1e-8);
    CHECK(test::largest_difference(p.dynamics.ensemble_covariance(nngp, p.test, time),
                                   solved.ensemble_covariance(nngp, p.test)) < 1e-7);
  }
}

TEST_CASE("descent in closed form is descent step by step") {
  const DrawnProblem p;
  const double stable = p.dynamics.largest_stable_step();
  for (double share : {0.01, 0.5, 0.75, 0.99})  // from 0.5 on some eigenvectors overshoot
    for (int steps : {1, 2, 50}) {
      CAPTURE(share);
      CAPTURE(steps);
      const auto time = TrainingTime::descent(steps, share * stable);
      const Tensor loop = descend(p, steps, share * stable);
      CHECK(test::largest_difference(p.dynamics.predict_training(time), loop.slice(0, 25)) < 1e-12);
      CHECK(test::largest_difference(p.dynamics.predict(p.test, time), loop.slice(25, 31)) < 1e-12);
    }
}

TEST_CASE("many small steps are the flow") {
  const DrawnProblem p;
  const auto flow = TrainingTime::flow(2, 0.25);
  double before = 0;
  for (int64_t steps : {100, 1000, 10000}) {
    const auto descent = TrainingTime::descent(steps, 0.5 / static_cast<double>(steps));
    const double gap = test::largest_difference(p.dynamics.predict(p.test, flow),
                                                p.dynamics.predict(p.test, descent));
    CHECK(gap > 0);
    if (before > 0) CHECK(gap == doctest::Approx(before / 10).epsilon(0.2));  // first order
    before = gap;
  }
  CHECK(before < 1e-3);
}

TEST_CASE("small eigenvalues keep their digits") {
  const auto flow = TrainingTime::flow(3), descent = TrainingTime::descent(7, 0.5);
  CHECK(flow.gone_over(1e-20) == doctest::Approx(3).epsilon(1e-14));
  CHECK(descent.gone_over(1e-20) == doctest::Approx(3.5).epsilon(1e-14));
  CHECK(descent.gone(2) == 1);              // a step of exactly one
  CHECK(descent.gone(3) == 1 + 1 / 128.0);  // 1 - (-1/2)^7
  CHECK(TrainingTime::descent(8, 0.5).gone(3) == 1 - 1 / 256.0);
  CHECK(TrainingTime::flow(kForever).gone(1e-300) == 1);
}

TEST_CASE("a singular Theta is trained as far as gradients reach") {
  // Two equal inputs with targets 1 and 3: both end at 2.
  const auto kernel = std::make_shared<ClosedKernel>(1, 1);
  const Tensor x = Tensor::from(std::vector<double>{0, 0, 5}, {3, 1});
  const Tensor y = Tensor::from(std::vector<double>{1, 3, -1}, {3, 1});
  const TrainingDynamics dynamics(kernel, x, y);
  for (const TrainingTime& time :
       {TrainingTime::flow(kForever), TrainingTime::descent(100000, 0.5)}) {
    const std::vector<double> f = dynamics.predict_training(time).to_vector<double>();
    CHECK(f[0] == doctest::Approx(2).epsilon(1e-12));
    CHECK(f[1] == doctest::Approx(2).epsilon(1e-12));
    CHECK(f[2] == doctest::Approx(-1).epsilon(1e-12));
    CHECK(test::largest_difference(dynamics.predict(x, time), dynamics.predict_training(time)) <
          1e-12);
  }
}

TEST_CASE("one row follows an exponential") {
  const auto kernel = std::make_shared<ClosedKernel>(1, 1, 2);
  const Tensor x = Tensor::zeros({1, 1}, DType::f64), y = Tensor::full({1, 1}, 3, DType::f64);
  const TrainingDynamics dynamics(kernel, x, y);
  CHECK(dynamics.eigenvalues() == std::vector<double>{2});
  CHECK(dynamics.largest_stable_step() == 1);
  CHECK(dynamics.predict(x, TrainingTime::flow(0.4, 0.5)).item() ==
        doctest::Approx(3 * (1 - std::exp(-0.4))).epsilon(1e-14));
  CHECK(dynamics.predict(x, TrainingTime::descent(3, 0.25)).item() ==
        doctest::Approx(3 * (1 - 0.125)).epsilon(1e-14));
}

TEST_CASE("steps that diverge are refused with the largest that does not") {
  const auto kernel = std::make_shared<ClosedKernel>(1, 1, 2);
  const Tensor x = Tensor::zeros({1, 1}, DType::f64);
  const TrainingDynamics dynamics(kernel, x, x);
  CHECK(message_of([&] { dynamics.predict_training(TrainingTime::descent(10, 1.5)); }) ==
        "training_dynamics: got a step size of 1.5, with which gradient descent diverges: wanted "
        "at most 1, 2 / the largest eigenvalue");
  CHECK_NOTHROW(dynamics.predict_training(TrainingTime::descent(10, 1)));
  CHECK_THROWS_AS(TrainingTime::descent(-1, 1), Error);
  CHECK_THROWS_AS(TrainingTime::descent(1, 0), Error);
  CHECK_THROWS_AS(TrainingTime::flow(-1), Error);
  CHECK_THROWS_AS(TrainingTime::flow(std::nan("")), Error);
}

TEST_CASE("training dynamics refuse what is not finite, and no rows") {
  const auto kernel = std::make_shared<ClosedKernel>(1, 1);
  const Tensor bad = Tensor::from(std::vector<double>{0, kForever}, {2, 1});
  CHECK(message_of([&] { TrainingDynamics(kernel, bad, bad); }) ==
        "training_dynamics: x is inf in row 1 (from 0)");
  CHECK(message_of([&] { TrainingDynamics(kernel, draw_points(0, 1, 1), draw_points(0, 1, 2)); }) ==
        "training_dynamics: got no rows, wanted at least one");
}
