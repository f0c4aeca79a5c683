#include "transpose.h"

#include "launch.cuh"

namespace keel {
namespace {

constexpr int64_t kColumns = 16;  // of x, a tile: the line of float32 that one load brings

/// Up to 16 columns of a member's x [rows, cols], as rows of out [cols, rows].
template <class T>
struct TransposeTile {
  using Scalar = T;
  static constexpr bool kApart = true;
  int64_t rows, cols, tiles;  // tiles a member
  const T* x;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row, int64_t first, int64_t count) const {
    const int64_t member = row / tiles, begin = (row - member * tiles) * kColumns;
    const int64_t end = begin + kColumns < cols ? begin + kColumns : cols;
    const T* source = x + (member * rows + first) * cols;
    for (int64_t col = begin; col < end; ++col)
      g.store(count, out + (member * cols + col) * rows + first,
              [&](auto i) { return source[i * cols + col]; });
  }
};

Tensor transposed(const Tensor& x) {
  const std::int64_t rows = x.size(-2), cols = x.size(-1), members = x.shape().members();
  const Shape shape = x.rank() == 3 ? Shape{members, cols, rows} : Shape{cols, rows};
  Tensor out = Tensor::empty(shape, x.dtype(), x.device());
  const std::int64_t tiles = (cols + kColumns - 1) / kColumns;
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_columns(x.device(), members * tiles, rows,
                   TransposeTile<T>{rows, cols, tiles, x.data<T>(), out.data<T>()});
  });
  return out;
}

}  // namespace

Var transpose(const Var& x) {
  check<ShapeError>(x.value().rank() == 2 || x.value().rank() == 3, "transpose",
                    "got x {}, wanted [n, d] or [S, n, d]", x.shape());
  return record("transpose", transposed(x.value()), {&x},
                [slot = x.slot()](const Tensor& d_out, Backward& backward) {
                  check(!backward.per_sample(), "transpose",
                        "got a sink that keeps samples apart, wanted one that adds them up: where "
                        "rows become columns, as in a Batch Norm, no sample is by itself");
                  backward.add(slot, transposed(d_out));
                });
}

}  // namespace keel
