#include "dense.h"

#include "gemm.h"
#include "launch.cuh"
#include "sum.h"

namespace keel {
namespace {

/// out[row] = scale * bias[member]: what the product is then added to.
template <class T>
struct SpreadBias {
  using Scalar = T;
  int64_t cols, member_rows, bias_stride;
  T scale;
  const T* bias;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto b = g.load(cols, bias + member_offset(row, member_rows, bias_stride));
    g.store(cols, out + row * cols, [&](auto i) { return scale * b[i]; });
  }
};

void check_shapes(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same_kind("dense", "x", x, "weight", weight);
  check_same_kind("dense", "x", x, "bias", bias);
  check<ShapeError>((x.rank() == 2 || x.rank() == 3) && (weight.rank() == 2 || weight.rank() == 3),
                    "dense",
                    "got x {} and weight {}, wanted [n, i] and [o, i], or [S, n, i] and "
                    "[S, o, i]",
                    x.shape(), weight.shape());
  check<ShapeError>(x.size(-1) == weight.size(-1), "dense",
                    "x {} has {} columns, weight {} needs {}", x.shape(), x.size(-1),
                    weight.shape(), weight.size(-1));
  check<ShapeError>(x.rank() == 2 || weight.rank() == 2 || x.size(0) == weight.size(0), "dense",
                    "x {} has {} members, weight {} has {}", x.shape(), x.size(0), weight.shape(),
                    weight.size(0));
  const Shape wanted =
      weight.rank() == 3 ? Shape{weight.size(0), weight.size(1)} : Shape{weight.size(0)};
  check<ShapeError>(bias.shape() == wanted, "dense", "got bias {}, weight {} needs {}",
                    bias.shape(), weight.shape(), wanted);
}

// d_x of an input [n, i] that S members share: the sum over members of what each pulls back.
Tensor pull_to_shared(const Tensor& d_z, const Tensor& weight, double scale) {
  const std::int64_t members = d_z.size(0), n = d_z.size(1), i = weight.size(-1);
  Tensor each = Tensor::empty({members, n, i}, d_z.dtype(), d_z.device());
  gemm(Transpose::no, Transpose::no, scale, d_z, weight, 0, each);
  Tensor d_x = Tensor::empty({n, i}, d_z.dtype(), d_z.device());
  sum_rows(each.reshape({members, n * i}), 1, false, d_x);
  return d_x;
}

}  // namespace

Var dense(const Var& x, const Var& weight, const Var& bias, DenseScale scale) {
  check_shapes(x.value(), weight.value(), bias.value());
  const Tensor w = weight.value();
  // One weight for all members: their rows are simply more rows.
  const bool flatten = x.value().rank() == 3 && w.rank() == 2;
  const Shape x_shape = x.shape();
  const std::int64_t o = w.size(-2), i = w.size(-1);
  const Tensor input = flatten ? x.value().reshape({x_shape.rows(), i}) : x.value();
  const std::int64_t n = input.size(-2);
  const bool shared_input = input.rank() == 2 && w.rank() == 3;

  Tensor z =
      Tensor::empty(w.rank() == 3 ? Shape{w.size(0), n, o} : Shape{n, o}, w.dtype(), w.device());
  dispatch(z.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(z.device(), z.shape().rows(), o,
                SpreadBias<T>{o, n, w.rank() == 3 ? o : 0, static_cast<T>(scale.bias),
                              bias.value().data<T>(), z.data<T>()});
  });
  gemm(Transpose::no, Transpose::yes, scale.weight, input, w, 1, z);

  const Shape z_shape = z.shape();
  const Shape out_shape = flatten ? Shape{x_shape[0], x_shape[1], o} : z_shape;
  // A stack of cotangents is one product with a weight that is read once.
  const Takes takes = x.value().rank() == 2 && w.rank() == 2 ? Takes::stacks : Takes::one;
  return record(
      "dense", z.reshape(out_shape), {&x, &weight, &bias},
      [=, x_slot = x.slot(), w_slot = weight.slot(), b_slot = bias.slot()](const Tensor& d_out,
                                                                           Backward& backward) {
        // Without members rows are rows: of all that share a weight, or of a stack.
        const Tensor d_z = w.rank() == 2 ? d_out.reshape({d_out.shape().rows(), o}) : d_out;
        backward.outer(w_slot, Outer{d_z, input, scale.weight});
        backward.rows(b_slot, Rows{d_z, scale.bias});
        if (!backward.wants(x_slot)) return;
        if (shared_input) return backward.add(x_slot, pull_to_shared(d_z, w, scale.weight));
        Tensor d_x = Tensor::empty(w.rank() == 2 ? Shape{d_z.size(0), i} : input.shape(),
                                   d_z.dtype(), d_z.device());
        gemm(Transpose::no, Transpose::no, scale.weight, d_z, w, 0, d_x);
        backward.add(x_slot, flatten ? d_x.reshape(x_shape) : d_x);
      },
      takes);
}

}  // namespace keel
