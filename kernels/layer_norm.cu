#include "layer_norm.h"

#include "gain_and_bias.h"
#include "launch.cuh"
#include "layer_norm_program.h"
#include "row_chunks.h"
#include "sum.h"

namespace keel {
namespace {

/// What is computed.
struct Kind {
  const char* op;
  bool centred;  ///< a Layer Norm; else RMSNorm
  bool relu;
};

constexpr Kind kLayerNorm{"layer_norm", true, false}, kLayerNormRelu{"layer_norm_relu", true, true},
    kRmsNorm{"rms_norm", false, false}, kRmsNormRelu{"rms_norm_relu", false, true};

/// What forward leaves for the pullback. Without gain and bias both are empty, and so are bias and
/// center of what is not centred.
struct Normalised {
  Kind kind;
  Tensor x, gain, bias, center, rstd;
  double eps;

  bool affine() const { return gain.defined(); }
  std::int64_t cols() const { return x.size(-1); }
  std::int64_t members() const { return x.shape().members(); }
  std::int64_t member_rows() const { return x.size(-2); }
  Takes takes() const { return x.rank() == 2 ? Takes::stacks : Takes::one; }
  template <class T>
  LayerNormShape<T> shape() const {
    return {cols(), member_rows(), affine() && gain.rank() == 2 ? cols() : 0, static_cast<T>(eps)};
  }
  template <class T>
  static T* data(const Tensor& tensor) {
    return tensor.defined() ? tensor.data<T>() : nullptr;
  }
};

template <class F>
void with_flag(bool flag, F f) {
  flag ? f(std::true_type()) : f(std::false_type());
}

// Calls f(centred, affine, relu) with all as compile-time constants.
template <class F>
void with_flags(const Normalised& saved, F f) {
  with_flag(saved.kind.centred, [&](auto centred) {
    with_flag(saved.affine(), [&](auto affine) {
      with_flag(saved.kind.relu, [&](auto relu) { f(centred, affine, relu); });
    });
  });
}

Tensor forward(const Normalised& saved) {
  const Tensor& x = saved.x;
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_flags(saved, [&](auto centred, auto affine, auto relu) {
      launch_rows(x.device(), x.shape().rows(), saved.cols(),
                  LayerNormForward<T, centred(), affine(), relu()>{
                      saved.shape<T>(), x.data<T>(), Normalised::data<T>(saved.gain),
                      Normalised::data<T>(saved.bias), out.data<T>(),
                      Normalised::data<T>(saved.center), saved.rstd.data<T>()});
    });
  });
  return out;
}

void pull(const Normalised& saved, Slot x_slot, Slot gain_slot, Slot bias_slot, const Tensor& d_out,
          Backward& backward) {
  const Tensor& x = saved.x;
  const std::int64_t members = saved.members(), rows = saved.member_rows(), cols = saved.cols();
  const RowChunks chunks = row_chunks(x.device(), rows, backward.per_sample());
  const std::int64_t cotangents = x.elements() == 0 ? 1 : d_out.elements() / x.elements();
  Tensor d_x = Tensor::empty(d_out.shape(), x.dtype(), x.device());
  Tensor d_gain, d_bias;
  if (saved.affine()) {
    // Shared gain and bias sum over members too; members of their own keep their axis.
    const Shape parts = saved.gain.rank() == 2 ? Shape{members, chunks.count, cols}
                                               : Shape{cotangents * members * chunks.count, cols};
    d_gain = Tensor::empty(parts, x.dtype(), x.device());
    if (saved.kind.centred) d_bias = Tensor::empty(parts, x.dtype(), x.device());
  }
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_flags(saved, [&](auto centred, auto affine, auto relu) {
      const auto part_of = [&](const Tensor& parts, std::int64_t part) {
        return parts.defined() ? parts.data<T>() + part : nullptr;
      };
      for (std::int64_t c = 0; c < cotangents; ++c) {
        const std::int64_t at = c * x.elements(),
                           part = affine() ? c * members * chunks.count * cols : 0;
        launch_chunks(
            x.device(), members * chunks.count, std::min(chunks.rows, rows), cols,
            LayerNormBackward<T, centred(), affine(), relu()>{
                saved.shape<T>(), chunks.rows, chunks.count, x.data<T>(),
                Normalised::data<T>(saved.gain), Normalised::data<T>(saved.bias),
                Normalised::data<T>(saved.center), saved.rstd.data<T>(), d_out.data<T>() + at,
                d_x.data<T>() + at, part_of(d_gain, part), part_of(d_bias, part)});
      }
    });
  });
  backward.add(x_slot, std::move(d_x));
  if (!saved.affine()) return;
  if (!saved.kind.centred) return backward.rows(gain_slot, Rows{std::move(d_gain)});
  backward.rows_pair(gain_slot, Rows{std::move(d_gain)}, bias_slot, Rows{std::move(d_bias)});
}

Normalised prepare(const Kind& kind, const Tensor& x, double eps) {
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, kind.op, "got x {}, wanted [n, d] or [S, n, d]",
                    x.shape());
  check<ShapeError>(x.size(-1) > 0, kind.op, "got x {}, wanted at least one column", x.shape());
  check(eps >= 0, kind.op, "got eps {}, wanted eps >= 0", eps);
  const auto each_row = [&] { return Tensor::empty({x.shape().rows()}, x.dtype(), x.device()); };
  return {kind, x, {}, {}, kind.centred ? each_row() : Tensor(), each_row(), eps};
}

Var plain(const Kind& kind, const Var& x, double eps) {
  const Normalised saved = prepare(kind, x.value(), eps);
  return record(
      kind.op, forward(saved), {&x},
      [saved, slot = x.slot()](const Tensor& d_out, Backward& backward) {
        pull(saved, slot, kNoSlot, kNoSlot, d_out, backward);
      },
      saved.takes());
}

Var with_gain(const Kind& kind, const Var& x, const Var& gain, double eps) {
  Normalised saved = prepare(kind, x.value(), eps);
  check_gain(kind.op, x, gain, saved.x.rank() == 3);
  saved.gain = gain.value();
  return record(
      kind.op, forward(saved), {&x, &gain},
      [saved, x = x.slot(), gain = gain.slot()](const Tensor& d_out, Backward& backward) {
        pull(saved, x, gain, kNoSlot, d_out, backward);
      },
      saved.takes());
}

Var with_gain_and_bias(const Kind& kind, const Var& x, const Var& gain, const Var& bias,
                       double eps) {
  Normalised saved = prepare(kind, x.value(), eps);
  check_gain_and_bias(kind.op, x, gain, bias, saved.x.rank() == 3);
  saved.gain = gain.value();
  saved.bias = bias.value();
  return record(
      kind.op, forward(saved), {&x, &gain, &bias},
      [saved, x = x.slot(), gain = gain.slot(), bias = bias.slot()](
          const Tensor& d_out, Backward& backward) { pull(saved, x, gain, bias, d_out, backward); },
      saved.takes());
}

}  // namespace

Var layer_norm(const Var& x, const Var& gain, const Var& bias, double eps) {
  return with_gain_and_bias(kLayerNorm, x, gain, bias, eps);
}
Var layer_norm(const Var& x, double eps) { return plain(kLayerNorm, x, eps); }

Var layer_norm_relu(const Var& x, const Var& gain, const Var& bias, double eps) {
  return with_gain_and_bias(kLayerNormRelu, x, gain, bias, eps);
}
Var layer_norm_relu(const Var& x, double eps) { return plain(kLayerNormRelu, x, eps); }

Var rms_norm(const Var& x, const Var& gain, double eps) {
  return with_gain(kRmsNorm, x, gain, eps);
}
Var rms_norm(const Var& x, double eps) { return plain(kRmsNorm, x, eps); }

Var rms_norm_relu(const Var& x, const Var& gain, double eps) {
  return with_gain(kRmsNormRelu, x, gain, eps);
}
Var rms_norm_relu(const Var& x, double eps) { return plain(kRmsNormRelu, x, eps); }

}  // namespace keel
