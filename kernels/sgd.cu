#include "sgd.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct SgdUpdate {
  using Scalar = T;
  T lr, momentum;
  const T* gradient;
  T *parameter, *velocity;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t begin, int64_t count) const {
    const auto d = g.load(count, gradient + begin);
    auto p = g.take(count, parameter + begin);
    auto v = g.take(count, velocity + begin);
    g.each(count, [&](auto i) {
      v[i] = momentum * v[i] + d[i];
      p[i] -= lr * v[i];
    });
    g.flush(count, p, parameter + begin);
    g.flush(count, v, velocity + begin);
  }
};

}  // namespace

void sgd(const Tensor& parameters, const Tensor& gradients, const Tensor& velocity,
         const SgdOptions& options) {
  check_same_kind("sgd", "parameters", parameters, "gradients", gradients);
  check_same_kind("sgd", "parameters", parameters, "velocity", velocity);
  check<ShapeError>(
      gradients.shape() == parameters.shape() && velocity.shape() == parameters.shape(), "sgd",
      "got parameters {}, gradients {}, velocity {}: wanted one shape", parameters.shape(),
      gradients.shape(), velocity.shape());
  check(options.lr >= 0 && options.momentum >= 0 && std::isfinite(options.lr) &&
            std::isfinite(options.momentum),
        "sgd", "got lr {}, momentum {}, wanted both >= 0 and finite", options.lr, options.momentum);
  dispatch(parameters.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(parameters.device(), parameters.elements(),
                    SgdUpdate<T>{static_cast<T>(options.lr), static_cast<T>(options.momentum),
                                 gradients.data<T>(), parameters.data<T>(), velocity.data<T>()});
  });
}

}  // namespace keel
