#include "arithmetic.h"

#include "launch.cuh"

namespace keel {
namespace {

struct Plus {
  template <class T>
  KEEL_HD static T of(T a, T b) {
    return a + b;
  }
};

struct Times {
  template <class T>
  KEEL_HD static T of(T a, T b) {
    return a * b;
  }
};

template <class T, class Function>
struct PairElements {
  using Scalar = T;
  const T *a, *b;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto left = g.load(count, a + first);
    const auto right = g.load(count, b + first);
    g.store(count, out + first, [&](auto i) { return Function::of(left[i], right[i]); });
  }
};

template <class T>
struct ScaleElements {
  using Scalar = T;
  T factor;
  const T* x;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto values = g.load(count, x + first);
    g.store(count, out + first, [&](auto i) { return factor * values[i]; });
  }
};

template <class Function>
Tensor paired(const Tensor& a, const Tensor& b) {
  Tensor out = Tensor::empty(a.shape(), a.dtype(), a.device());
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(a.device(), a.elements(),
                    PairElements<T, Function>{a.data<T>(), b.data<T>(), out.data<T>()});
  });
  return out;
}

Tensor scaled(const Tensor& x, double factor) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(x.device(), x.elements(),
                    ScaleElements<T>{static_cast<T>(factor), x.data<T>(), out.data<T>()});
  });
  return out;
}

void check_alike(const char* op, const Tensor& a, const Tensor& b) {
  check_same_kind(op, "a", a, "b", b);
  check<ShapeError>(a.shape() == b.shape(), op, "got a {} and b {}, wanted equal shapes", a.shape(),
                    b.shape());
}

}  // namespace

Var add(const Var& a, const Var& b) {
  check_alike("add", a.value(), b.value());
  return record(
      "add", paired<Plus>(a.value(), b.value()), {&a, &b},
      [a = a.slot(), b = b.slot()](const Tensor& d_out, Backward& backward) {
        backward.add(a, d_out);
        backward.add(b, d_out);
      },
      Takes::stacks);
}

Var mul(const Var& a, const Var& b) {
  check_alike("mul", a.value(), b.value());
  return record("mul", paired<Times>(a.value(), b.value()), {&a, &b},
                [a_slot = a.slot(), b_slot = b.slot(), a = a.value(), b = b.value()](
                    const Tensor& d_out, Backward& backward) {
                  if (backward.wants(a_slot)) backward.add(a_slot, paired<Times>(d_out, b));
                  if (backward.wants(b_slot)) backward.add(b_slot, paired<Times>(d_out, a));
                });
}

Var scale(const Var& x, double factor) {
  return record(
      "scale", scaled(x.value(), factor), {&x},
      [slot = x.slot(), factor](const Tensor& d_out, Backward& backward) {
        backward.add(slot, scaled(d_out, factor));
      },
      Takes::stacks);
}

}  // namespace keel
