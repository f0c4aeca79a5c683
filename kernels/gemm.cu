#include "gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "../core/threads.h"
#include "cpu_gemm.h"
#include "cuda_libraries.cuh"
#include "one_blas_thread.h"

namespace keel {
namespace {

using std::int64_t;

/// One product of the batch, and how far apart the members' operands lie (0: shared).
struct Product {
  bool transpose_a, transpose_b;
  int m, n, k;
  int64_t members, stride_a, stride_b, stride_c;
  double alpha, beta;
  int row_a() const { return transpose_a ? m : k; }  // elements from one stored row to the next
  int row_b() const { return transpose_b ? k : n; }
};

constexpr int64_t kBlockRows = 256, kBlockCols = 1024, kBlockDepth = 1024;
constexpr int64_t kWorthThreads = int64_t{1} << 18;  // multiplications; fewer do not repay waking
constexpr int64_t kWorthSharing = int64_t{1} << 23;  // of a member, by several threads

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

/// p with m, n, k cut to one block; a, b, c point to its corner. Row strides stay those of p.
template <class T>
void block_product(const Product& whole, int64_t m, int64_t n, int64_t k, double beta, const T* a,
                   const T* b, T* c) {
  const auto op_a = whole.transpose_a ? CblasTrans : CblasNoTrans;
  const auto op_b = whole.transpose_b ? CblasTrans : CblasNoTrans;
  [[maybe_unused]] const OneBlasThread one;
  const auto size = [](int64_t value) { return static_cast<int>(value); };
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, op_a, op_b, size(m), size(n), size(k), static_cast<T>(whole.alpha),
                a, whole.row_a(), b, whole.row_b(), static_cast<T>(beta), c, whole.n);
  else
    cblas_dgemm(CblasRowMajor, op_a, op_b, size(m), size(n), size(k), whole.alpha, a, whole.row_a(),
                b, whole.row_b(), beta, c, whole.n);
}

/// The product of member s.
template <class T>
CpuGemm<T> product_of(const Product& p, int64_t s, const T* a, const T* b, T* c) {
  return {p.transpose_a,
          p.transpose_b,
          p.m,
          p.n,
          p.k,
          static_cast<T>(p.alpha),
          static_cast<T>(p.beta),
          a + s * p.stride_a,
          p.row_a(),
          b + s * p.stride_b,
          p.row_b(),
          c + s * p.stride_c,
          p.n};
}

template <class T>
void cpu_product(const Product& p, const T* a, const T* b, T* c) {
  if (product_of(p, 0, a, b, c).suits()) {
    const auto member = [&](int64_t s) { product_of(p, s, a, b, c).run(); };
    const int64_t work = int64_t{p.m} * p.n * p.k;
    // A thread a member; inside the region, products stay on their thread. Few large members are
    // shared by all threads, one after another.
    const bool large = p.members < thread_count() && work > kWorthSharing;
    if (p.members == 1 || large || work * p.members <= kWorthThreads) {
      for (int64_t s = 0; s < p.members; ++s) member(s);
      return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t s = 0; s < p.members; ++s) member(s);
    return;
  }
  // A small result of a long sum, as of a weight's derivative, is cut along the sum.
  const bool deep = int64_t{p.m} * p.n <= kBlockRows * kBlockRows && p.k >= 2 * kBlockDepth;
  const int64_t rows = deep ? p.m : kBlockRows, cols = deep ? p.n : kBlockCols;
  const int64_t depth = deep ? kBlockDepth : p.k;
  const int64_t across = blocks_of(p.n, cols), layers = blocks_of(p.k, depth);
  const int64_t per_member = blocks_of(p.m, rows) * across * layers;
  const int64_t tasks = p.members * per_member, size = int64_t{p.m} * p.n;
  [[maybe_unused]] const bool threads = tasks > 1 && size * p.k * p.members > kWorthThreads;
  const Tensor parts = deep ? Tensor::empty({p.members, layers, size}, dtype_of<T>()) : Tensor();
  T* part = deep ? parts.data<T>() : nullptr;

#pragma omp parallel for schedule(dynamic) if (threads)
  for (int64_t task = 0; task < tasks; ++task) {
    const int64_t member = task / per_member, block = task % per_member;
    const int64_t i = block / layers / across * rows, j = block / layers % across * cols;
    const int64_t l = block % layers * depth;
    const T* from_a = a + member * p.stride_a + (p.transpose_a ? l * p.m + i : i * p.k + l);
    const T* from_b = b + member * p.stride_b + (p.transpose_b ? j * p.k + l : l * p.n + j);
    T* into = deep ? part + task * size : c + member * p.stride_c + i * p.n + j;
    block_product(p, std::min(rows, p.m - i), std::min(cols, p.n - j), std::min(depth, p.k - l),
                  deep ? 0 : p.beta, from_a, from_b, into);
  }
  for (int64_t member = 0; deep && member < p.members; ++member)
    for (int64_t layer = 0; layer < layers; ++layer) {
      const T* source = part + (member * layers + layer) * size;
      T* target = c + member * p.stride_c;
      const T keep = layer == 0 ? static_cast<T>(p.beta) : T(1);
#pragma omp simd
      for (int64_t e = 0; e < size; ++e)
        target[e] = keep == 0 ? source[e] : keep * target[e] + source[e];
    }
}

#ifdef KEEL_WITH_CUDA

template <class T>
void cuda_product(Device device, const Product& p, const T* a, const T* b, T* c) {
  const T alpha = static_cast<T>(p.alpha), beta = static_cast<T>(p.beta);
  const auto op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int members = static_cast<int>(p.members);
  const cublasHandle_t handle = cublas_handle(device, dtype_of<T>());
  // cuBLAS counts columns first: row-major c = a b is its c' = b' a'. Batches have kernels of their
  // own, which do not cut a long sum among multiprocessors: one member is no batch.
  const auto one = [&](auto product, const char* name) {
    cublas_check(product(handle, op_b, op_a, p.n, p.m, p.k, &alpha, b, p.row_b(), a, p.row_a(),
                         &beta, c, p.n),
                 name);
  };
  const auto many = [&](auto product, const char* name) {
    cublas_check(product(handle, op_b, op_a, p.n, p.m, p.k, &alpha, b, p.row_b(), p.stride_b, a,
                         p.row_a(), p.stride_a, &beta, c, p.n, p.stride_c, members),
                 name);
  };
  if constexpr (std::is_same_v<T, float>)
    members == 1 ? one(cublasSgemm, "cublasSgemm")
                 : many(cublasSgemmStridedBatched, "cublasSgemmStridedBatched");
  else
    members == 1 ? one(cublasDgemm, "cublasDgemm")
                 : many(cublasDgemmStridedBatched, "cublasDgemmStridedBatched");
}

#endif

int as_int(int64_t size) {
  check<ShapeError>(size <= std::numeric_limits<int>::max(), "gemm", "got size {}, wanted < 2^31",
                    size);
  return static_cast<int>(size);
}

int64_t member_stride(const char* name, const Tensor& x, int64_t members) {
  check<ShapeError>(x.rank() == 2 || (x.rank() == 3 && x.size(0) == members), "gemm",
                    "got {} {}, wanted [rows, cols] or [{}, rows, cols]", name, x.shape(), members);
  return x.rank() == 3 ? x.size(1) * x.size(2) : 0;
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, const Tensor& a,
          const Tensor& b, double beta, const Tensor& c) {
  check_same_kind("gemm", "a", a, "b", b);
  check_same_kind("gemm", "a", a, "c", c);
  const bool ta = transpose_a == Transpose::yes, tb = transpose_b == Transpose::yes;
  const int64_t members = c.shape().members();
  Product p{};
  p.transpose_a = ta;
  p.transpose_b = tb;
  p.members = members;
  p.stride_a = member_stride("a", a, members);
  p.stride_b = member_stride("b", b, members);
  p.stride_c = member_stride("c", c, members);
  p.m = as_int(c.size(-2));
  p.n = as_int(c.size(-1));
  p.k = as_int(a.size(ta ? -2 : -1));
  p.alpha = alpha;
  p.beta = beta;
  check<ShapeError>(
      a.size(ta ? -1 : -2) == p.m && b.size(tb ? -1 : -2) == p.k && b.size(tb ? -2 : -1) == p.n,
      "gemm", "got a {}{}, b {}{}, c {}: they do not fit", a.shape(), ta ? "'" : "", b.shape(),
      tb ? "'" : "", c.shape());
  if (c.elements() == 0) return;
  if (p.k == 0) {  // an empty sum; BLAS would refuse the leading dimension 0
    check(beta == 0 || beta == 1, "gemm", "got beta {} for an empty sum, wanted 0 or 1", beta);
    if (beta == 0) fill(c, 0);
    return;
  }
  dispatch(c.dtype(), [&](auto t) {
    using T = decltype(t);
#ifdef KEEL_WITH_CUDA
    if (c.device().is_cuda())
      return cuda_product(c.device(), p, a.data<T>(), b.data<T>(), c.data<T>());
#endif
    cpu_product(p, a.data<T>(), b.data<T>(), c.data<T>());
  });
}

}  // namespace keel
