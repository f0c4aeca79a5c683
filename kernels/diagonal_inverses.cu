#include "diagonal_inverses.h"

#include "cuda_libraries.cuh"
#include "launch.cuh"

namespace keel {
namespace {

constexpr int64_t kCorner = 32, kLargest = 1024;

#ifdef KEEL_WITH_CUDA

/// Rows of the blocks before any is inverted.
template <class T>
struct CopyBlocks {
  using Scalar = T;
  static constexpr bool kApart = true;
  static constexpr int kWidest = kLargest;
  int64_t n, side;
  const T* l;
  T* blocks;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t within = row % side;
    const T* from = l + row * n + (row - within);
    T* to = blocks + row * side;
    g.each(side, [&](auto j) {
      to[j] = j > within ? T(0) : row < n ? from[j] : T(j == within ? 1 : 0);
    });
  }
};

/// Corners of 32 x 32 on the diagonal, a column a thread, by substitution: what a thread reads of
/// the inverse it wrote itself.
template <class T>
struct InvertCorners {
  using Scalar = T;
  static constexpr bool kApart = true;
  static constexpr int kNarrowest = kCorner, kWidest = kCorner;
  int64_t n, side;
  const T* l;
  T* blocks;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t corner) const {
    const int64_t first = corner * kCorner;
    T* to = blocks + first * side + first % side;
    g.each(kCorner, [&](auto j) {
      for (int64_t i = j; i < kCorner; ++i) {
        T sum = i == j ? 1 : 0;
        const T* row = l + (first + i) * n + first;
        const bool there = first + i < n;
        for (int64_t k = j; there && k < i; ++k) sum -= row[k] * to[k * side + j];
        to[i * side + j] = there ? sum / row[i] : sum;
      }
    });
  }
};

/// Of a block [[a, 0], [b, c]] whose squares a and c, of `half` rows, are inverted already: b
/// becomes -c b a. The same of all blocks together; columns first all are their transposes.
template <class T>
void join(cublasHandle_t handle, int64_t blocks, int64_t side, int64_t half, T* a, T* work) {
  const auto product = routine<T>(cublasSgemmStridedBatched, cublasDgemmStridedBatched);
  const int size = static_cast<int>(half), row = static_cast<int>(side);
  const int count = static_cast<int>(blocks);
  T* const b = a + half * side;
  const T* const c = b + half;
  const T one = 1, zero = 0, minus_one = -1;
  cublas_check(product(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, a, row,
                       side * side, b, row, side * side, &zero, work, size, half * half, count),
               "gemm");
  cublas_check(product(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &minus_one, work, size,
                       half * half, c, row, side * side, &zero, b, row, side * side, count),
               "gemm");
}

template <class T>
Tensor inverses(const Tensor& l) {
  const Device device = l.device();
  const int64_t n = l.size(0), side = diagonal_block(n), blocks = (n + side - 1) / side;
  const Tensor into = Tensor::empty({blocks, side, side}, l.dtype(), device);
  T* const data = into.data<T>();
  launch_rows(device, blocks * side, side, CopyBlocks<T>{n, side, l.data<T>(), data});
  launch_rows(device, blocks * side / kCorner, kCorner,
              InvertCorners<T>{n, side, l.data<T>(), data});
  if (side == kCorner) return into;
  const Tensor work = Tensor::empty({blocks, side / 2, side / 2}, l.dtype(), device);
  const cublasHandle_t handle = cublas_handle(device, l.dtype());
  for (int64_t half = kCorner; half < side; half *= 2)
    for (int64_t at = 0; at < side; at += 2 * half)
      join(handle, blocks, side, half, data + at * side + at, work.data<T>());
  return into;
}

#endif

}  // namespace

int64_t diagonal_block(int64_t n) {
  int64_t side = kCorner;
  while (side < n && side < kLargest) side *= 2;
  return side;
}

Tensor invert_diagonal_blocks(const Tensor& l) {
  check<ShapeError>(l.rank() == 2 && l.size(0) == l.size(1) && l.size(0) > 0,
                    "invert_diagonal_blocks", "got {}, wanted [n, n] of at least a row", l.shape());
#ifdef KEEL_WITH_CUDA
  if (l.device().is_cuda())
    return dispatch(l.dtype(), [&](auto t) { return inverses<decltype(t)>(l); });
#endif
  fail<DeviceError>("invert_diagonal_blocks", "got a tensor on {}, wanted a GPU's", l.device());
}

}  // namespace keel
