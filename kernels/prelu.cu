#include "prelu.h"

#include "launch.cuh"
#include "row_chunks.h"

namespace keel {
namespace {

/// Of [members * member_rows, cols]: a member's slopes, one, or one a column, begin at
/// member_stride * member (0: all members share them).
struct SlopeShape {
  int64_t cols, member_rows, member_stride;
};

/// kEach: a slope a column.
template <class T, bool kEach>
struct PreluForward {
  using Scalar = T;
  SlopeShape shape;
  const T *x, *slope;
  T* y;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t cols = shape.cols;
    const T* own = slope + member_offset(row, shape.member_rows, shape.member_stride);
    const auto values = g.load(cols, x + row * cols);
    T* target = y + row * cols;
    if constexpr (kEach) {
      const auto slopes = g.load(cols, own);
      g.store(cols, target,
              [&](auto i) { return values[i] < 0 ? slopes[i] * values[i] : values[i]; });
    } else {
      const T all = own[0];
      g.store(cols, target, [&](auto i) { return values[i] < 0 ? all * values[i] : values[i]; });
    }
  }
};

/// Derivatives of a chunk of rows: d_x = d_y (x > 0 ? 1 : slope), and the chunk's own sum over rows
/// of d_y min(x, 0), by column or of all: [chunk, cols] or [chunk, 1] of `part`. Chunks of one row
/// leave the derivative of each sample.
template <class T, bool kEach>
struct PreluBackward {
  using Scalar = T;
  SlopeShape shape;
  int64_t chunk_rows, member_chunks;  // rows a chunk, chunks a member
  const T *x, *slope, *d_y;
  T *d_x, *part;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t chunk) const {
    const int64_t cols = shape.cols;
    const auto [member, begin, end] =
        rows_of_chunk(chunk, chunk_rows, member_chunks, shape.member_rows);
    const T* own = slope + member * shape.member_stride;
    if constexpr (kEach) {
      const auto slopes = g.load(cols, own);
      auto sums = g.zeros(cols, part + chunk * cols);
      for (int64_t row = begin; row < end; ++row) {
        const auto values = g.load(cols, x + row * cols);
        const auto d = g.load(cols, d_y + row * cols);
        g.store(cols, d_x + row * cols, [&](auto i) {
          const bool above = values[i] > 0;
          const T of_slope = product(d[i], values[i]), below = slopes[i] * d[i];
          sums[i] += above ? T(0) : of_slope;
          return above ? d[i] : below;
        });
      }
      g.flush(cols, sums, part + chunk * cols);
    } else {
      const T all = own[0];
      T sum = 0;
      for (int64_t row = begin; row < end; ++row) {
        const auto values = g.load(cols, x + row * cols);
        const auto d = g.load(cols, d_y + row * cols);
        sum += g.sum(cols, [&](auto i) { return values[i] > 0 ? T(0) : product(d[i], values[i]); });
        g.store(cols, d_x + row * cols, [&](auto i) { return values[i] > 0 ? d[i] : all * d[i]; });
      }
      g.once([&] { part[chunk] = sum; });
    }
  }
};

void check_shapes(const Tensor& x, const Tensor& slope) {
  check_same_kind("prelu", "x", x, "slope", slope);
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, "prelu", "got x {}, wanted [n, d] or [S, n, d]",
                    x.shape());
  check<ShapeError>(x.size(-1) > 0, "prelu", "got x {}, wanted at least one column", x.shape());
  const bool shared = slope.rank() == 1;
  const bool own = x.rank() == 3 && slope.rank() == 2 && slope.size(0) == x.size(0);
  check<ShapeError>((shared || own) && (slope.size(-1) == 1 || slope.size(-1) == x.size(-1)),
                    "prelu", "got slope {}, x {} needs {} or {}", slope.shape(), x.shape(),
                    Shape{1}, Shape{x.size(-1)});
}

// What forward leaves for the pullback.
struct Saved {
  Tensor x, slope;

  std::int64_t cols() const { return x.size(-1); }
  bool own() const { return slope.rank() == 2; }
  bool each() const { return slope.size(-1) > 1; }
  SlopeShape shape() const { return {cols(), x.size(-2), own() ? slope.size(-1) : 0}; }
};

// Calls f(T(), each), the latter a compile-time constant.
template <class F>
void with_kind(const Saved& saved, F f) {
  dispatch(saved.x.dtype(),
           [&](auto t) { saved.each() ? f(t, std::true_type()) : f(t, std::false_type()); });
}

Tensor forward(const Saved& saved) {
  const Tensor& x = saved.x;
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  with_kind(saved, [&](auto t, auto each) {
    using T = decltype(t);
    launch_rows(
        x.device(), x.shape().rows(), saved.cols(),
        PreluForward<T, each()>{saved.shape(), x.data<T>(), saved.slope.data<T>(), y.data<T>()});
  });
  return y;
}

void pull(const Saved& saved, Slot x_slot, Slot slope_slot, const Tensor& d_y, Backward& backward) {
  const Tensor& x = saved.x;
  const std::int64_t members = x.shape().members(), rows = x.size(-2), cols = saved.cols();
  const RowChunks chunks = row_chunks(x.device(), rows, backward.per_sample());
  const std::int64_t cotangents = x.elements() == 0 ? 1 : d_y.elements() / x.elements();
  const std::int64_t slopes = saved.slope.size(-1);
  Tensor d_x = Tensor::empty(d_y.shape(), x.dtype(), x.device());
  // Slopes of all members add them up, as if they were samples.
  Tensor d_slope = Tensor::empty(saved.own() ? Shape{members, chunks.count, slopes}
                                             : Shape{cotangents * members * chunks.count, slopes},
                                 x.dtype(), x.device());
  with_kind(saved, [&](auto t, auto each) {
    using T = decltype(t);
    for (std::int64_t c = 0; c < cotangents; ++c) {
      const std::int64_t at = c * x.elements(), part = c * members * chunks.count * slopes;
      launch_chunks(x.device(), members * chunks.count, std::min(chunks.rows, rows), cols,
                    PreluBackward<T, each()>{saved.shape(), chunks.rows, chunks.count, x.data<T>(),
                                             saved.slope.data<T>(), d_y.data<T>() + at,
                                             d_x.data<T>() + at, d_slope.data<T>() + part});
    }
  });
  backward.add(x_slot, std::move(d_x));
  backward.rows(slope_slot, Rows{std::move(d_slope)});
}

}  // namespace

Var prelu(const Var& x, const Var& slope) {
  check_shapes(x.value(), slope.value());
  const Saved saved{x.value(), slope.value()};
  return record(
      "prelu", forward(saved), {&x, &slope},
      [saved, x = x.slot(), slope = slope.slot()](const Tensor& d_y, Backward& backward) {
        pull(saved, x, slope, d_y, backward);
      },
      saved.x.rank() == 2 ? Takes::stacks : Takes::one);
}

}  // namespace keel
