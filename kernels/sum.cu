#include "sum.h"

#include <bit>
#include <span>

#include "launch.cuh"

namespace keel {
namespace {

constexpr int kChunk = 64;  // rows that are added one after another

/// into = scale * (sum of x over its rows).
struct RowSum {
  Tensor x, into;
};

#ifdef KEEL_DEVICE_CODE

// As many chunks as a block has threads for each of a sector's eight columns.
constexpr int64_t kFewRows = 2 * kChunk * kChunk;

/// [members, rows, cols] -> [members, cols] of at most kFewRows rows, in one launch: a block has
/// `width` columns of a member, each chunk a thread a column, whose sums one thread adds up. In the
/// order of SumRows, chunks, then chunks of their sums, then those: to the same bits. Blocks from
/// `each` on have another one to sum.
template <class T>
struct SumFewRows {
  static constexpr int kThreads = 1024, kAtOnce = 16;
  int64_t rows, cols, tiles, each;  // tiles: of `width` columns
  int width, chunks;                // width * chunks <= kThreads
  T scale;
  const T *x, *other_x;
  T *out, *other_out;

  KEEL_HD int64_t column(int64_t block, int thread) const {
    return block % tiles * width + thread % width;
  }
  KEEL_HD T chunk_sum(const T* from, int64_t block, int thread) const {
    const int64_t begin = thread / width * kChunk;
    const int64_t end = begin + kChunk < rows ? begin + kChunk : rows;
    const T* at = from + (block / tiles * rows + begin) * cols + column(block, thread);
    T total = 0;
    int64_t row = begin;
    for (; row + kAtOnce <= end; row += kAtOnce, at += kAtOnce * cols) {
      T values[kAtOnce];  // asked for together
      for (int k = 0; k < kAtOnce; ++k) values[k] = at[k * cols];
      for (int k = 0; k < kAtOnce; ++k) total += values[k];
    }
    for (; row < end; ++row, at += cols) total += *at;
    return total;
  }
};

template <class T>
__global__ void __launch_bounds__(SumFewRows<T>::kThreads) sum_few_rows(const SumFewRows<T> task) {
  __shared__ T sums[SumFewRows<T>::kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const bool other = blockIdx.x >= task.each;
  const int64_t block = blockIdx.x - (other ? task.each : 0);
  const bool inside = task.column(block, thread) < task.cols;
  if (inside) sums[thread] = task.chunk_sum(other ? task.other_x : task.x, block, thread);
  __syncthreads();
  if (!inside || thread >= task.width) return;
  T total = 0;
  for (int first = 0; first < task.chunks; first += kChunk) {
    const int end = first + kChunk < task.chunks ? first + kChunk : task.chunks;
    T part = 0;
    for (int chunk = first; chunk < end; ++chunk) part += sums[chunk * task.width + thread];
    total += part;
  }
  (other ? task.other_out : task.out)[block / task.tiles * task.cols + task.column(block, thread)] =
      task.scale * total;
}

// One sum, or two of one shape.
template <class T>
void sum_few(std::span<const RowSum> sums, int64_t members, int64_t rows, double scale) {
  using Task = SumFewRows<T>;
  const Tensor& x = sums[0].x;
  const int64_t cols = x.size(-1), count = static_cast<int64_t>(sums.size());
  const int chunks = std::max(1, static_cast<int>((rows + kChunk - 1) / kChunk));
  const auto widest = std::bit_floor(static_cast<unsigned>(Task::kThreads / chunks));
  int width = static_cast<int>(std::min<int64_t>(
      {128, widest, static_cast<int64_t>(std::bit_ceil(static_cast<std::uint64_t>(cols)))}));
  const auto tiles_of = [cols](int columns) { return (cols + columns - 1) / columns; };
  // A few blocks would draw all rows through as many multiprocessors. Eight columns are a sector.
  constexpr int kNarrowest = 8, kFewThreads = 64, kManyBlocks = 128;
  while (width > kNarrowest && width * chunks > kFewThreads &&
         count * members * tiles_of(width) < kManyBlocks)
    width /= 2;
  const int64_t tiles = tiles_of(width), each = members * tiles;
  launch_kernel(x.device(), "sum_rows", sum_few_rows<T>, count * each, width * chunks,
                Task{rows, cols, tiles, each, width, chunks, static_cast<T>(scale), x.data<T>(),
                     sums.back().x.data<T>(), sums[0].into.data<T>(), sums.back().into.data<T>()});
}

#endif

/// Sums a chunk of rows: out[chunk] = scale * sum. Rows outside, columns inside: as they lie.
template <class T>
struct SumRows {
  using Scalar = T;
  // A GPU's multiprocessor has few chunks, which would wait for memory row by row: it is asked for
  // eight rows at a time. They are added one after another all the same.
  static constexpr int kAtOnce = 8;
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
    const int64_t n = end - begin;
    int64_t row = 0;
    for (; row + kAtOnce <= n; row += kAtOnce) {
      const T* at = source + row * cols;
      const decltype(g.load(count, at)) values[kAtOnce] = {g.load(count, at),
                                                           g.load(count, at + cols),
                                                           g.load(count, at + 2 * cols),
                                                           g.load(count, at + 3 * cols),
                                                           g.load(count, at + 4 * cols),
                                                           g.load(count, at + 5 * cols),
                                                           g.load(count, at + 6 * cols),
                                                           g.load(count, at + 7 * cols)};
      g.each(count, [&](auto i) {
        T sum = total[i];
        for (int k = 0; k < kAtOnce; ++k) sum += values[k][i];
        total[i] = sum;
      });
    }
    for (; row < n; ++row) {
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

void check_sum(const Tensor& x, const Tensor& into) {
  check_same_kind("sum_rows", "x", x, "into", into);
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, "sum_rows",
                    "got x {}, wanted [rows, cols] or [members, rows, cols]", x.shape());
  check<ShapeError>(into.elements() == x.shape().members() * x.size(-1), "sum_rows",
                    "got x {} into {}", x.shape(), into.shape());
}

// Of one shape. Level by level: sums[..].x becomes the chunks' sums.
void sum_all_rows(std::span<RowSum> sums, double scale) {
  const Tensor& first = sums[0].x;
  const Device device = first.device();
  const DType dtype = first.dtype();
  const int64_t members = first.shape().members(), cols = first.size(-1);
  if (members * cols == 0) return;
  int64_t rows = first.size(-2);
  for (bool last = false; !last;) {
#ifdef KEEL_DEVICE_CODE
    if (runs_device_code(device) && rows <= kFewRows)
      return dispatch(dtype, [&](auto t) { sum_few<decltype(t)>(sums, members, rows, scale); });
#endif
    const int64_t chunks = rows <= kChunk ? 1 : (rows + kChunk - 1) / kChunk;
    last = chunks == 1;
    for (RowSum& sum : sums) {
      const Tensor out = last ? sum.into : Tensor::empty({members, chunks, cols}, dtype, device);
      dispatch(dtype, [&](auto t) {
        using T = decltype(t);
        launch_columns(device, members * chunks, cols,
                       SumRows<T>{rows, cols, kChunk, chunks, last ? static_cast<T>(scale) : T(1),
                                  sum.x.data<T>(), out.data<T>()});
      });
      sum.x = out;
    }
    rows = chunks;
  }
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
  check_sum(x, into);
  if (accumulate) {  // rare: a parameter used twice
    const Tensor sum = Tensor::empty(into.shape(), into.dtype(), into.device());
    sum_rows(x, scale, false, sum);
    return keel::accumulate(into, sum);
  }
  RowSum sum{x, into};
  sum_all_rows({&sum, 1}, scale);
}

void sum_rows(const Tensor& x, const Tensor& y, double scale, const Tensor& into_x,
              const Tensor& into_y) {
  check_sum(x, into_x);
  check_sum(y, into_y);
  check_same_kind("sum_rows", "x", x, "y", y);
  check<ShapeError>(x.shape() == y.shape(), "sum_rows", "got x {} and y {}, wanted one shape",
                    x.shape(), y.shape());
  RowSum sums[] = {{x, into_x}, {y, into_y}};
  sum_all_rows(sums, scale);
}

}  // namespace keel
