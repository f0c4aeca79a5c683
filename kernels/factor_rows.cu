#include "factor_rows.h"

#include "launch.cuh"

namespace keel {
namespace {

template <class T>
struct AddRowDots {
  using Scalar = T;
  int64_t cols, member_rows, y_row, y_member;  // strides of y
  T scale;
  const T *x, *y;
  T* into;
  int64_t into_stride;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto a = g.load(cols, x + row * cols);
    const auto b = g.load(cols, y + row * y_row + member_offset(row, member_rows, y_member));
    const T dot = g.sum(cols, [&](auto i) { return a[i] * b[i]; });
    g.once([&] { into[row * into_stride] += scale * dot; });
  }
};

template <class T>
struct ScaleRows {
  using Scalar = T;
  int64_t cols, u_rows, u_stride;  // row k is scaled by row k % u_rows of u
  const T *x, *u;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const auto a = g.load(cols, x + row * cols);
    const T factor = u[row % u_rows * u_stride];
    g.store(cols, out + row * cols, [&](auto i) { return factor * a[i]; });
  }
};

template <class T>
struct AddGramDiagonal {
  using Scalar = T;
  int64_t u_cols, v_cols, v_rows;  // v_rows: members may share v
  T scale, offset;
  const T *u, *u2, *v, *v2;
  T* into;

  template <class Group>
  KEEL_HD static T dot(Group g, int64_t cols, const T* x, const T* y) {
    const auto a = g.load(cols, x);
    const auto b = g.load(cols, y);
    return g.sum(cols, [&](auto i) { return a[i] * b[i]; });
  }

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const T first = dot(g, u_cols, u + row * u_cols, u2 + row * u_cols);
    T second = scale;
    if (v) {
      const int64_t at = row % v_rows * v_cols;
      second = scale * dot(g, v_cols, v + at, v2 + at) + offset;
    }
    g.once([&] { into[row] += first * second; });
  }
};

}  // namespace

void add_row_dots(double scale, const Tensor& x, const Tensor& y, const Tensor& into,
                  std::int64_t column) {
  check_same_kind("add_row_dots", "x", x, "y", y);
  check_same_kind("add_row_dots", "x", x, "into", into);
  const int64_t rows = x.shape().rows(), cols = x.shape().cols(), members = x.shape().members();
  const bool by_row = y.elements() == x.elements();
  check<ShapeError>((by_row || y.elements() == members * cols) && into.shape().rows() == rows &&
                        column >= 0 && column < into.size(-1),
                    "add_row_dots", "got x {}, y {}, column {} of {}: they do not fit", x.shape(),
                    y.shape(), column, into.shape());
  if (rows == 0) return;
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(x.device(), rows, cols,
                AddRowDots<T>{cols, rows / members, by_row ? cols : 0, by_row ? 0 : cols,
                              static_cast<T>(scale), x.data<T>(), y.data<T>(),
                              into.data<T>() + column, into.size(-1)});
  });
}

Tensor scale_rows(const Tensor& x, const Tensor& u, std::int64_t column) {
  check_same_kind("scale_rows", "x", x, "u", u);
  const int64_t rows = x.shape().rows(), u_rows = u.shape().rows();
  check<ShapeError>((u_rows == rows || u_rows == x.size(-2)) && column >= 0 && column < u.size(-1),
                    "scale_rows", "got x {}, column {} of u {}: they do not fit", x.shape(), column,
                    u.shape());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (rows == 0) return out;
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(x.device(), rows, x.size(-1),
                ScaleRows<T>{x.size(-1), u_rows, u.size(-1), x.data<T>(), u.data<T>() + column,
                             out.data<T>()});
  });
  return out;
}

void add_gram_diagonal(const Tensor& u, const Tensor& u2, const Tensor& v, const Tensor& v2,
                       double scale, double offset, const Tensor& into) {
  check_same_kind("add_gram_diagonal", "u", u, "into", into);
  for (const Tensor* factor : {&u2, &v, &v2})
    if (factor->defined()) check_same_kind("add_gram_diagonal", "a factor", *factor, "into", into);
  const int64_t rows = u.shape().rows();
  check<ShapeError>(u2.shape() == u.shape() && into.elements() == rows &&
                        v.defined() == v2.defined() && (!v.defined() || v2.shape() == v.shape()) &&
                        (!v.defined() || v.shape().rows() == rows || v.size(-2) == u.size(-2)),
                    "add_gram_diagonal", "got u {} and {}, into {}: they do not fit", u.shape(),
                    u2.shape(), into.shape());
  if (rows == 0) return;
  dispatch(u.dtype(), [&](auto t) {
    using T = decltype(t);
    const int64_t v_cols = v.defined() ? v.size(-1) : 0,
                  v_rows = v.defined() ? v.shape().rows() : 1;
    launch_rows(u.device(), rows, std::max(u.size(-1), v_cols),
                AddGramDiagonal<T>{u.size(-1), v_cols, v_rows, static_cast<T>(scale),
                                   static_cast<T>(offset), u.data<T>(), u2.data<T>(),
                                   v.defined() ? v.data<T>() : nullptr,
                                   v2.defined() ? v2.data<T>() : nullptr, into.data<T>()});
  });
}

}  // namespace keel
