// Ops that map each element by itself, by a Function (activations.h).
#pragma once

#include "../core/tape.h"
#include "activations.h"
#include "launch.cuh"

namespace keel {

template <class T, class Function>
struct MapElements {
  using Scalar = T;
  const T* x;
  T* y;
  Function f;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto values = g.load(count, x + first);
    g.store(count, y + first, [&](auto i) { return f.value(values[i]); });
  }
};

template <class T, class Function>
struct PullElements {
  using Scalar = T;
  const T *saved, *d_y;
  T* d_x;
  Function f;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto at = g.load(count, saved + first);
    const auto d = g.load(count, d_y + first);
    g.store(count, d_x + first, [&](auto i) { return d[i] * f.derivative(at[i]); });
  }
};

/// y = f(x), any shape; d_x = d_y f'(x), for each cotangent of a stack.
template <class Function>
Var elementwise(const char* op, const Var& x, Function f = {}) {
  const Tensor& value = x.value();
  Tensor y = Tensor::empty(value.shape(), value.dtype(), value.device());
  dispatch(y.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(y.device(), y.elements(),
                    MapElements<T, Function>{value.data<T>(), y.data<T>(), f});
  });
  const Tensor saved = Function::kSaves == Saves::input ? value : y;
  auto pull = [slot = x.slot(), saved, f](const Tensor& d_y, Backward& backward) {
    Tensor d_x = Tensor::empty(d_y.shape(), d_y.dtype(), d_y.device());
    dispatch(d_y.dtype(), [&](auto t) {
      using T = decltype(t);
      const int64_t count = saved.elements();
      for (int64_t at = 0; at < d_y.elements(); at += count)
        launch_elements(
            d_y.device(), count,
            PullElements<T, Function>{saved.data<T>(), d_y.data<T>() + at, d_x.data<T>() + at, f});
    });
    backward.add(slot, std::move(d_x));
  };
  return record(op, y, {&x}, pull, Takes::stacks);
}

}  // namespace keel
