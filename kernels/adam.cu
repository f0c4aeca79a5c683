#include "adam.h"

#include <cmath>

#include "launch.cuh"

namespace keel {
namespace {

/// base^n for a whole n > 0, by squaring: of pow's many more instructions, in the one GPU thread
/// that there is, each would wait for the last. Off by up to n roundings, of which 1 - base^n sees
/// few.
KEEL_HD inline double whole_power(double base, double n) {
  double result = 1;
  for (auto left = static_cast<int64_t>(n); left > 0; left /= 2, base *= base)
    if (left % 2 != 0) result *= base;
  return result;
}

/// Counts the step and computes its bias corrections, once and in double.
struct AdamTick {
  using Scalar = double;
  static constexpr int kWidest = 1;
  double lr, beta1, beta2;
  double* step;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t) const {
    g.once([&] {
      step[0] += 1;
      step[1] = lr / (1 - whole_power(beta1, step[0]));
      step[2] = 1 / std::sqrt(1 - whole_power(beta2, step[0]));
    });
  }
};

template <class T>
struct AdamUpdate {
  using Scalar = T;
  T beta1, beta2, one_minus_beta1, one_minus_beta2, eps;
  const double* step;
  const T* gradient;
  T *parameter, *first, *second;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t begin, int64_t count) const {
    const T rate = static_cast<T>(step[1]), correction = static_cast<T>(step[2]);
    const auto d = g.load(count, gradient + begin);
    auto p = g.take(count, parameter + begin);
    auto m = g.take(count, first + begin);
    auto v = g.take(count, second + begin);
    // The moment of a parameter that no longer gets a derivative decays into denormals, on which a
    // CPU takes a hundred times as long; below the smallest normal number it is 0.
    constexpr T kSmallest = std::numeric_limits<T>::min();
    g.each(count, [&](auto i) {
      const T moment = beta1 * m[i] + one_minus_beta1 * d[i];
      m[i] = moment < kSmallest && moment > -kSmallest ? T(0) : moment;
      v[i] = beta2 * v[i] + one_minus_beta2 * d[i] * d[i];
      p[i] -= rate * m[i] / (std::sqrt(v[i]) * correction + eps);
    });
    g.flush(count, p, parameter + begin);
    g.flush(count, m, first + begin);
    g.flush(count, v, second + begin);
  }
};

}  // namespace

AdamState::AdamState(const Tensor& parameters)
    : first(Tensor::zeros(parameters.shape(), parameters.dtype(), parameters.device())),
      second(Tensor::zeros(parameters.shape(), parameters.dtype(), parameters.device())),
      step(Tensor::zeros({3}, DType::f64, parameters.device())) {}

void adam(const Tensor& parameters, const Tensor& gradients, AdamState& state,
          const AdamOptions& options) {
  check_same_kind("adam", "parameters", parameters, "gradients", gradients);
  check_same_kind("adam", "parameters", parameters, "state", state.first);
  check_same_kind("adam", "parameters", parameters, "state", state.second);
  check<ShapeError>(gradients.shape() == parameters.shape() &&
                        state.first.shape() == parameters.shape() &&
                        state.second.shape() == parameters.shape(),
                    "adam", "got parameters {}, gradients {}, state {}: wanted one shape",
                    parameters.shape(), gradients.shape(), state.first.shape());
  check(options.lr >= 0 && std::isfinite(options.lr) && options.beta1 >= 0 && options.beta1 < 1 &&
            options.beta2 >= 0 && options.beta2 < 1 && options.eps >= 0,
        "adam", "got lr {}, beta1 {}, beta2 {}, eps {}, wanted lr, eps >= 0 and betas in [0, 1)",
        options.lr, options.beta1, options.beta2, options.eps);
  const Device device = parameters.device();
  launch_rows(device, 1, 1,
              AdamTick{options.lr, options.beta1, options.beta2, state.step.data<double>()});
  dispatch(parameters.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(
        device, parameters.elements(),
        AdamUpdate<T>{static_cast<T>(options.beta1), static_cast<T>(options.beta2),
                      static_cast<T>(1 - options.beta1), static_cast<T>(1 - options.beta2),
                      static_cast<T>(options.eps), state.step.data<double>(), gradients.data<T>(),
                      parameters.data<T>(), state.first.data<T>(), state.second.data<T>()});
  });
}

}  // namespace keel
