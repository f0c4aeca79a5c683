#include "add_bias.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct AddBias {
  using Scalar = T;
  int64_t cols, member_rows, bias_stride;
  const T *x, *bias;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto values = g.load(cols, x + row * cols);
    const auto b = g.load(cols, bias + member_offset(row, member_rows, bias_stride));
    g.store(cols, out + row * cols, [&](auto i) { return values[i] + b[i]; });
  }
};

void check_shapes(const Tensor& x, const Tensor& bias) {
  check_same_kind("add_bias", "x", x, "bias", bias);
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, "add_bias",
                    "got x {}, wanted [n, p] or [S, n, p]", x.shape());
  const bool shared = bias.shape() == Shape{x.size(-1)};
  check<ShapeError>(shared || (x.rank() == 3 && bias.shape() == Shape{x.size(0), x.size(-1)}),
                    "add_bias", "got bias {}, x {} needs {}", bias.shape(), x.shape(),
                    Shape{x.size(-1)});
}

}  // namespace

Var add_bias(const Var& x, const Var& bias) {
  const Tensor &value = x.value(), &b = bias.value();
  check_shapes(value, b);
  const std::int64_t cols = value.size(-1);
  const bool own = b.rank() == 2;
  Tensor out = Tensor::empty(value.shape(), value.dtype(), value.device());
  dispatch(out.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(out.device(), out.shape().rows(), cols,
                AddBias<T>{cols, value.size(-2), own ? cols : 0, value.data<T>(), b.data<T>(),
                           out.data<T>()});
  });
  return record(
      "add_bias", out, {&x, &bias},
      [x = x.slot(), bias = bias.slot(), own, cols](const Tensor& d_out, Backward& backward) {
        backward.add(x, d_out);
        // A bias of all members adds them up, as if they were samples.
        backward.rows(bias, Rows{own ? d_out : d_out.reshape({d_out.shape().rows(), cols})});
      },
      value.rank() == 2 ? Takes::stacks : Takes::one);
}

}  // namespace keel
