#include "sum.h"

#include "launch.cuh"

namespace keel {
namespace {

/// Sums a chunk of rows: out[chunk] = scale * sum. Rows outside, columns inside: as they lie.
template <class T>
struct SumRows {
  using Scalar = T;
  int64_t rows, cols, chunk_rows, chunks;  // rows and chunks of one member
  T scale;
  const T* x;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t chunk, int64_t first, int64_t count) const {
    const int64_t begin = chunk % chunks * chunk_rows;
    const int64_t end = begin + chunk_rows < rows ? begin + chunk_rows : rows;
    const T* source = x + (chunk / chunks * rows + begin) * cols + first;
    T* target = out + chunk * cols + first;
    auto total = g.zeros(count, target);
    for (int64_t row = 0; row < end - begin; ++row) {
      const auto values = g.load(count, source + row * cols);
      g.each(count, [&](auto i) { total[i] += values[i]; });
    }
    g.each(count, [&](auto i) { total[i] *= scale; });
    g.flush(count, total, target);
  }
};

/// Sums a run of at most kRun elements of a member: [members, n] -> [members, ceil(n / kRun)].
constexpr int kRun = 1024;

template <class T>
struct SumRun {
  using Scalar = T;
  static constexpr int kWidest = kRun;
  int64_t n, runs;
  T scale;
  const T* x;
  T* out;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t run) const {
    const int64_t begin = run % runs * kRun;
    const int64_t count = n - begin < kRun ? n - begin : kRun;
    const auto values = g.load(count, x + run / runs * n + begin);
    const T total = g.sum(count, [&](auto i) { return values[i]; });
    g.once([&] { out[run] = scale * total; });
  }
};

/// [members, n] -> [members], scaled.
Tensor sum_members(const Tensor& x, int64_t members, double scale, Shape result) {
  Tensor current = x;
  int64_t n = members == 0 ? 0 : x.elements() / members;
  if (x.elements() == 0) return Tensor::zeros(result, x.dtype(), x.device());
  for (bool last = false; !last;) {
    const int64_t runs = (n + kRun - 1) / kRun;
    last = runs == 1;
    Tensor out = Tensor::empty(last ? result : Shape{members, runs}, x.dtype(), x.device());
    dispatch(x.dtype(), [&](auto t) {
      using T = decltype(t);
      launch_rows(x.device(), members * runs, std::min<int64_t>(n, kRun),
                  SumRun<T>{n, runs, last ? static_cast<T>(scale) : T(1), current.data<T>(),
                            out.data<T>()});
    });
    current = std::move(out);
    n = runs;
  }
  return current;
}

/// d_x of every element of member s is scale * d_out[s].
template <class T>
struct Spread {
  using Scalar = T;
  T scale;
  const T* d_out;
  T* d_x;
  int64_t cols;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t member, int64_t first, int64_t count) const {
    const T value = scale * d_out[member];
    g.store(count, d_x + member * cols + first, [&](auto) { return value; });
  }
};

Var scaled_sum(const char* op, const Var& x, double scale) {
  const Shape shape = x.shape();
  const int64_t members = shape.members();
  const Shape result = shape.rank() >= 3 ? Shape{members} : Shape{};
  return record(op, sum_members(x.value(), members, scale, result), {&x},
                [slot = x.slot(), shape, members, scale](const Tensor& d_out, Backward& backward) {
                  Tensor d_x = Tensor::empty(shape, d_out.dtype(), d_out.device());
                  const int64_t cols = members == 0 ? 0 : shape.elements() / members;
                  dispatch(d_x.dtype(), [&](auto t) {
                    using T = decltype(t);
                    launch_columns(
                        d_x.device(), members, cols,
                        Spread<T>{static_cast<T>(scale), d_out.data<T>(), d_x.data<T>(), cols});
                  });
                  backward.add(slot, std::move(d_x));
                });
}

}  // namespace

Var sum(const Var& x) { return scaled_sum("sum", x, 1); }

Var mean(const Var& x) {
  const int64_t members = x.shape().members();
  const int64_t n = members == 0 ? 0 : x.shape().elements() / members;
  check<ShapeError>(n > 0, "mean", "got x {}, wanted at least one element a member", x.shape());
  return scaled_sum("mean", x, 1.0 / static_cast<double>(n));
}

void sum_rows(const Tensor& x, double scale, bool accumulate, const Tensor& into) {
  constexpr int64_t kChunk = 64;
  check_same_kind("sum_rows", "x", x, "into", into);
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, "sum_rows",
                    "got x {}, wanted [rows, cols] or [members, rows, cols]", x.shape());
  const int64_t members = x.shape().members(), cols = x.size(-1);
  int64_t rows = x.size(-2);
  check<ShapeError>(into.elements() == members * cols, "sum_rows", "got x {} into {}", x.shape(),
                    into.shape());
  if (accumulate) {  // rare: a parameter used twice
    const Tensor sum = Tensor::empty(into.shape(), into.dtype(), into.device());
    sum_rows(x, scale, false, sum);
    return keel::accumulate(into, sum);
  }
  Tensor current = x;
  for (bool last = false; !last;) {
    const int64_t chunks = rows <= kChunk ? 1 : (rows + kChunk - 1) / kChunk;
    last = chunks == 1;
    const Tensor out = last ? into : Tensor::empty({members, chunks, cols}, x.dtype(), x.device());
    dispatch(x.dtype(), [&](auto t) {
      using T = decltype(t);
      launch_columns(x.device(), members * chunks, cols,
                     SumRows<T>{rows, cols, kChunk, chunks, last ? static_cast<T>(scale) : T(1),
                                current.data<T>(), out.data<T>()});
    });
    current = out;
    rows = chunks;
  }
}

}  // namespace keel
