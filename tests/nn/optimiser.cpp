#include "../../nn/optimiser.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <limits>

#include <cmath>

#include "../../core/random.h"
#include "../gpu.h"
#include "../message_of.h"

using namespace keel;

namespace {

constexpr std::int64_t kElements = 2051;

// Gradients of the oracle and of the optimiser alike: any function of parameter and step will do.
double gradient(double parameter, int step, std::size_t i) {
  return 2 * parameter - std::sin(0.1 * static_cast<double>(i) + step);
}

Tensor gradients_at(const Tensor& parameters, int step) {
  std::vector<double> values = parameters.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = gradient(values[i], step, i);
  return Tensor::from(values, parameters.shape()).to(parameters.dtype()).to(parameters.device());
}

double difference(const Tensor& parameters, const std::vector<double>& oracle) {
  double worst = 0;
  const std::vector<double> got = parameters.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = max_or_nan(worst, std::abs(got[i] - oracle[i]));
  return worst;
}

void check_adam(Device device) {
  for (DType dtype : {DType::f32, DType::f64}) {
    const AdamOptions options{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6};
    const Tensor parameters = normal({kElements}, {1, 0}, 1, dtype).to(device);
    std::vector<double> oracle = parameters.to_vector<double>();
    std::vector<double> m(kElements, 0), v(kElements, 0);
    Optimiser optimiser(options, parameters);
    for (int step = 1; step <= 20; ++step) {
      optimiser.step(gradients_at(parameters, step));
      for (std::size_t i = 0; i < oracle.size(); ++i) {
        const double g = gradient(oracle[i], step, i);
        m[i] = options.beta1 * m[i] + (1 - options.beta1) * g;
        v[i] = options.beta2 * v[i] + (1 - options.beta2) * g * g;
        const double m_hat = m[i] / (1 - std::pow(options.beta1, step));
        const double v_hat = v[i] / (1 - std::pow(options.beta2, step));
        oracle[i] -= options.lr * m_hat / (std::sqrt(v_hat) + options.eps);
      }
    }
    CHECK(difference(parameters, oracle) < (dtype == DType::f32 ? 2e-5 : 1e-12));
  }
}

void check_sgd(Device device) {
  for (DType dtype : {DType::f32, DType::f64}) {
    for (double momentum : {0.0, 0.9}) {
      const SgdOptions options{.lr = 0.05, .momentum = momentum};
      const Tensor parameters = normal({kElements}, {1, 0}, 1, dtype).to(device);
      std::vector<double> oracle = parameters.to_vector<double>(), v(kElements, 0);
      Optimiser optimiser(options, parameters);
      for (int step = 1; step <= 20; ++step) {
        optimiser.step(gradients_at(parameters, step));
        for (std::size_t i = 0; i < oracle.size(); ++i) {
          v[i] = momentum * v[i] + gradient(oracle[i], step, i);
          oracle[i] -= options.lr * v[i];
        }
      }
      CHECK(difference(parameters, oracle) < (dtype == DType::f32 ? 1e-5 : 1e-12));
    }
  }
}

}  // namespace

TEST_CASE("optimiser: Adam follows Kingma and Ba's algorithm 1") { check_adam(Device::cpu()); }

TEST_CASE("optimiser: SGD with momentum as PyTorch's") { check_sgd(Device::cpu()); }

TEST_CASE("optimiser: Adam and SGD on the GPU") {
  if (!test::gpu_here("optimiser: Adam and SGD on the GPU")) return;
  check_adam(Device::cuda());
  check_sgd(Device::cuda());
}

TEST_CASE("optimiser: texts and bad input") {
  CHECK(optimiser_text(AdamOptions{}) == "adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08)");
  CHECK(optimiser_text(SgdOptions{.lr = 0.1, .momentum = 0.9}) == "sgd(lr=0.1, momentum=0.9)");
  const Tensor p = Tensor::zeros({3});
  CHECK(message_of([&] { Optimiser(SgdOptions{.lr = -1}, p).step(Tensor::zeros({3})); }) ==
        "sgd: got lr -1, momentum 0, wanted both >= 0 and finite");
  CHECK(message_of([&] {
          Optimiser(SgdOptions{.momentum = -1}, p).step(p);
        }).starts_with("sgd: got lr 0.01, momentum -1, "));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(Optimiser(SgdOptions{.lr = infinity}, p).step(Tensor::zeros({3})), Error);
  CHECK_THROWS_AS(Optimiser(SgdOptions{.momentum = infinity}, p).step(Tensor::zeros({3})), Error);
  CHECK(message_of([&] { Optimiser(SgdOptions{}, p).step(Tensor::zeros({2})); }) ==
        "sgd: got parameters [3], gradients [2], velocity [3]: wanted one shape");
  AdamState state(p);
  state.second = Tensor::zeros({2});
  CHECK(message_of([&] { adam(p, Tensor::zeros({3}), state, {}); }).starts_with("adam: got "));
  CHECK(message_of([&] {
          Optimiser(AdamOptions{.lr = std::numeric_limits<double>::infinity()}, p).step(p);
        }).starts_with("adam: got lr inf"));
  CHECK(message_of([&] { Optimiser(AdamOptions{}, p).set_steps(-1); }) ==
        "optimiser: got -1 steps, wanted at least 0");
}
