#include "arithmetic.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct AddElements {
  using Scalar = T;
  const T *a, *b;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto left = g.load(count, a + first);
    const auto right = g.load(count, b + first);
    g.store(count, out + first, [&](auto i) { return left[i] + right[i]; });
  }
};

template <class T>
struct MulElements {
  using Scalar = T;
  const T *a, *b;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t first, int64_t count) const {
    const auto left = g.load(count, a + first);
    const auto right = g.load(count, b + first);
    g.store(count, out + first, [&](auto i) { return left[i] * right[i]; });
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

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor out = Tensor::empty(a.shape(), a.dtype(), a.device());
  dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(a.device(), a.elements(),
                    MulElements<T>{a.data<T>(), b.data<T>(), out.data<T>()});
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
  const Tensor &left = a.value(), &right = b.value();
  Tensor out = Tensor::empty(left.shape(), left.dtype(), left.device());
  dispatch(left.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_elements(left.device(), left.elements(),
                    AddElements<T>{left.data<T>(), right.data<T>(), out.data<T>()});
  });
  return record("add", out, {&a, &b},
                [a = a.slot(), b = b.slot()](const Tensor& d_out, Backward& backward) {
                  backward.add(a, d_out);
                  backward.add(b, d_out);
                });
}

Var mul(const Var& a, const Var& b) {
  check_alike("mul", a.value(), b.value());
  return record("mul", product(a.value(), b.value()), {&a, &b},
                [a_slot = a.slot(), b_slot = b.slot(), a = a.value(), b = b.value()](
                    const Tensor& d_out, Backward& backward) {
                  if (backward.wants(a_slot)) backward.add(a_slot, product(d_out, b));
                  if (backward.wants(b_slot)) backward.add(b_slot, product(d_out, a));
                });
}

Var scale(const Var& x, double factor) {
  return record("scale", scaled(x.value(), factor), {&x},
                [slot = x.slot(), factor](const Tensor& d_out, Backward& backward) {
                  backward.add(slot, scaled(d_out, factor));
                });
}

}  // namespace keel
