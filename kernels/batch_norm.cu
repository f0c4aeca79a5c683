#include "batch_norm.h"

#include <algorithm>

#include "gain_and_bias.h"
#include "launch.cuh"
#include "layer_norm.h"
#include "sum.h"
#include "transpose.h"

namespace keel {
namespace {

/// Row r of out [members * units, n]: which row of xhat it is of, and which gain and bias it has.
struct UnitRows {
  int64_t n, units;
  bool own_xhat, own_gain;  // a member's; or all members'
  KEEL_HD int64_t xhat(int64_t row) const { return own_xhat ? row : row % units; }
  KEEL_HD int64_t gain(int64_t row) const { return own_gain ? row : row % units; }
};

/// A unit's row of xhat, times its gain, and its bias added.
template <class T>
struct ScaleUnit {
  using Scalar = T;
  UnitRows rows;
  const T *xhat, *gain, *bias;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto values = g.load(rows.n, xhat + rows.xhat(row) * rows.n);
    const T scale = gain[rows.gain(row)], shift = bias[rows.gain(row)];
    g.store(rows.n, out + row * rows.n,
            [&](auto i) { return multiply_add(values[i], scale, shift); });
  }
};

/// d_xhat = gain d_out, d_gain[row] = sum of d_out xhat, d_bias[row] = sum of d_out.
template <class T>
struct PullScaleUnit {
  using Scalar = T;
  UnitRows rows;
  const T *xhat, *gain, *d_out;
  T *d_xhat, *d_gain, *d_bias;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto values = g.load(rows.n, xhat + rows.xhat(row) * rows.n);
    const auto d = g.load(rows.n, d_out + row * rows.n);
    const auto sums = g.sum(rows.n, [&](auto i) {
      return Sums<T, 2>{{product(d[i], values[i]), d[i]}};
    });
    g.once([&] {
      d_gain[row] = sums[0];
      d_bias[row] = sums[1];
    });
    const T scale = gain[rows.gain(row)];
    g.store(rows.n, d_xhat + row * rows.n, [&](auto i) { return product(d[i], scale); });
  }
};

/// What forward leaves for the pullback: xhat [d, n] or [S, d, n].
struct Scaled {
  Tensor xhat, gain;
  std::int64_t members;  // of the result; -1: it has no such axis

  std::int64_t n() const { return xhat.size(-1); }
  std::int64_t units() const { return xhat.size(-2); }
  std::int64_t unit_rows() const { return (members < 0 ? 1 : members) * units(); }
  UnitRows rows() const { return {n(), units(), xhat.rank() == 3, gain.rank() == 2}; }
  Shape shape() const { return members >= 0 ? Shape{members, units(), n()} : Shape{units(), n()}; }
};

void pull(const Scaled& saved, Slot xhat_slot, Slot gain_slot, Slot bias_slot, const Tensor& d_out,
          Backward& backward) {
  const Tensor& xhat = saved.xhat;
  const std::int64_t members = saved.members < 0 ? 1 : saved.members, units = saved.units();
  // Shared gain and bias add up members, as if they were samples.
  const Shape parts = saved.gain.rank() == 2 ? Shape{members, 1, units} : Shape{members, units};
  Tensor d_xhat = Tensor::empty(saved.shape(), xhat.dtype(), xhat.device());
  Tensor d_gain = Tensor::empty(parts, xhat.dtype(), xhat.device());
  Tensor d_bias = Tensor::empty(parts, xhat.dtype(), xhat.device());
  dispatch(xhat.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(
        xhat.device(), saved.unit_rows(), saved.n(),
        PullScaleUnit<T>{saved.rows(), xhat.data<T>(), saved.gain.data<T>(), d_out.data<T>(),
                         d_xhat.data<T>(), d_gain.data<T>(), d_bias.data<T>()});
  });
  if (backward.wants(xhat_slot) && d_xhat.rank() > xhat.rank()) {
    Tensor summed = Tensor::empty(xhat.shape(), xhat.dtype(), xhat.device());
    sum_rows(d_xhat.reshape({members, xhat.elements()}), 1, false,
             summed.reshape({xhat.elements()}));
    d_xhat = std::move(summed);
  }
  backward.add(xhat_slot, std::move(d_xhat));
  backward.rows_pair(gain_slot, Rows{std::move(d_gain)}, bias_slot, Rows{std::move(d_bias)});
}

Var scale_units(const Var& xhat, const Var& gain, const Var& bias) {
  const Tensor &x = xhat.value(), &gains = gain.value();
  const std::int64_t members = x.rank() == 3 ? x.size(0) : gains.rank() == 2 ? gains.size(0) : -1;
  const Scaled saved{x, gains, members};
  Tensor out = Tensor::empty(saved.shape(), x.dtype(), x.device());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(x.device(), saved.unit_rows(), saved.n(),
                ScaleUnit<T>{saved.rows(), x.data<T>(), gains.data<T>(), bias.value().data<T>(),
                             out.data<T>()});
  });
  return record("batch_norm", out, {&xhat, &gain, &bias},
                [saved, xhat = xhat.slot(), gain = gain.slot(), bias = bias.slot()](
                    const Tensor& d_out, Backward& backward) {
                  pull(saved, xhat, gain, bias, d_out, backward);
                });
}

// Units standardised over the batch: a unit a row.
Var standardised(const Var& x, double eps) {
  const Tensor& value = x.value();
  check<ShapeError>(value.rank() == 2 || value.rank() == 3, "batch_norm",
                    "got x {}, wanted [n, d] or [S, n, d]", x.shape());
  check<ShapeError>(value.size(-2) > 0 && value.size(-1) > 0, "batch_norm",
                    "got x {}, wanted at least one row and one column", x.shape());
  check(eps >= 0, "batch_norm", "got eps {}, wanted eps >= 0", eps);
  return layer_norm(transpose(x), eps);
}

}  // namespace

Var batch_norm(const Var& x, const Var& gain, const Var& bias, double eps) {
  const Var xhat = standardised(x, eps);
  check_gain_and_bias("batch_norm", x, gain, bias, true);
  return transpose(scale_units(xhat, gain, bias));
}

Var batch_norm(const Var& x, double eps) { return transpose(standardised(x, eps)); }

}  // namespace keel
