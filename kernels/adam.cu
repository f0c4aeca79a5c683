#include "adam.h"

#include <cmath>

#include "adam_rule.h"
#include "launch.cuh"

namespace keel {
namespace {

struct Tick {
  using Scalar = double;
  static constexpr int kWidest = 1;
  AdamClock clock;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t) const {
    g.once([&] { clock.tick(); });
  }
};

template <class T>
struct AdamUpdate {
  using Scalar = T;
  AdamRule<T> rule;
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
    g.each(count, [&](auto i) { rule.update(d[i], rate, correction, p[i], m[i], v[i]); });
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

void check_adam(const AdamOptions& options) {
  check(options.lr >= 0 && std::isfinite(options.lr) && options.beta1 >= 0 && options.beta1 < 1 &&
            options.beta2 >= 0 && options.beta2 < 1 && options.eps >= 0,
        "adam", "got lr {}, beta1 {}, beta2 {}, eps {}, wanted lr, eps >= 0 and betas in [0, 1)",
        options.lr, options.beta1, options.beta2, options.eps);
}

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
  check_adam(options);
  const Device device = parameters.device();
  launch_rows(device, 1, 1, Tick{AdamClock(options, state)});
  dispatch(parameters.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(
        device, parameters.elements(),
        AdamUpdate<T>{AdamRule<T>(options), state.step.data<double>(), gradients.data<T>(),
                      parameters.data<T>(), state.first.data<T>(), state.second.data<T>()});
  });
}

}  // namespace keel
