// Groups: who executes a Program. A Program is the work of one row, written once; the Group gives
// it `load`, `store`, `each`, `sum`, `max`, `take` or `zeros` and their `flush`, and `once`, and
// hides lanes and barriers.
//
// Laws. tests/kernels/group.cpp holds the groups to 1 and 2, ThreadGroup every launch to 5; 3 and
// 4 bind who writes a Program.
//  1. Index i belongs to the same member for equal n: what `each` wrote at i may be re-read at i.
//  2. The order of combination is fixed: the same input gives the same bits.
//  3. f is pure in `sum` and `max`.
//  4. No Program reads what another member, or another row, wrote in the same launch.
//  5. n is at most the width that the launcher was told (or 128, 1024, ... where it was told less):
//     a GPU's group holds no more, and would leave out the rest. ThreadGroup ends the test.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#ifdef __CUDACC__
#define KEEL_HD __host__ __device__
#else
#define KEEL_HD
#endif

// Inlined whatever its length: a loop that calls it does not vectorise. After KEEL_HD clang++ takes
// no [[gnu::always_inline]].
#define KEEL_INLINE inline __attribute__((always_inline))

namespace keel {

using std::int64_t;

/// K sums made in one pass: g.sum(n, [&](auto i) { return Sums<T, 2>{{a, b}}; }).
template <class T, int K>
struct Sums {
  T v[K];
  KEEL_HD T operator[](int k) const { return v[k]; }
  KEEL_HD friend Sums operator+(Sums a, const Sums& b) {
    for (int k = 0; k < K; ++k) a.v[k] += b.v[k];
    return a;
  }
};

/// a * b + c, rounded alike wherever it is written: fused on a GPU, in two steps on a CPU (where
/// contraction is switched off), so that a forward and its pullback agree on the sign of the
/// result.
template <class T>
KEEL_HD T multiply_add(T a, T b, T c) {
#ifdef __CUDA_ARCH__
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// a * b, rounded before it is added to anything: left to itself, a GPU's compiler fuses the two in
/// one kernel, and not in the next.
template <class T>
KEEL_HD T product(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4)
    return __fmul_rn(a, b);
  else
    return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// Where a member's part of something begins that has one for all members (stride 0) or one each.
/// A GPU takes as many instructions for a division of 64 bits as for a short row's sum.
KEEL_HD inline int64_t member_offset(int64_t row, int64_t member_rows, int64_t stride) {
  return stride == 0 ? 0 : row / member_rows * stride;
}

/// Which elements of a row are one thread's, in a GPU's group (group.cuh). Runs of 16 bytes of the
/// type that the Program computes in, so that loads and stores are 16 bytes wide where addresses
/// allow: asked each time (some), or known (whole). Or one by one, the next thread's beside it
/// (none): where rows lie anyhow, an access of a warp then covers whole sectors of memory, which
/// runs that are taken apart ask for four times.
enum class Runs { some, whole, none };

/// Whole, for rows of so many columns from these addresses, or none; null stands for rows that
/// there are not.
template <class T, class... Rest>
Runs runs_of(int64_t cols, const T* first, const Rest*... rest) {
  const auto whole = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  const bool all =
      cols * static_cast<int64_t>(sizeof(T)) % 16 == 0 && whole(first) && (whole(rest) && ...);
  return all ? Runs::whole : Runs::none;
}

/// The members whose partial sums every CPU group combines: 32, as in a warp.
inline constexpr int kPartials = 32;

/// Folds 32 partials as a warp's butterfly does: distance 16, 8, 4, 2, 1.
/// Unrolled by the template: left as a loop over distances, it costs more than a row of 768.
template <int kDistance = kPartials / 2, class T, class Combine>
KEEL_HD T fold_partials(T (&partial)[kPartials], Combine combine) {
#pragma omp simd
  for (int p = 0; p < kDistance; ++p) partial[p] = combine(partial[p], partial[p + kDistance]);
  if constexpr (kDistance > 1)
    return fold_partials<kDistance / 2>(partial, combine);
  else
    return partial[0];
}

/// One thread of the CPU doing a row by itself. Memory takes the place of registers: a row that was
/// loaded stays in the first-level cache. KEEL_HD only so that nvcc lets a Program call it.
struct HostGroup {
  static constexpr int kMembers = 1;

  template <class T>
  KEEL_HD const T* load(int64_t, const T* source) const {
    return source;
  }

  /// A row to change where it is, and to `flush` to its home when done: several rows of a state
  /// change in one `each`, where `store` would go through them one by one.
  template <class T>
  KEEL_HD T* take(int64_t, T* home) const {
    return home;
  }

  /// A row of zeros to add to, and to `flush` to its home when done.
  template <class T>
  KEEL_HD T* zeros(int64_t n, T* home) const {
    for (int64_t i = 0; i < n; ++i) home[i] = 0;
    return home;
  }
  template <class T>
  KEEL_HD void flush(int64_t, const T*, T*) const {}

  template <class F>
  KEEL_HD void each(int64_t n, F f) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) f(i);
  }

  /// target[i] = f(i), in wide accesses where the hardware has them.
  template <class T, class F>
  KEEL_HD void store(int64_t n, T* target, F f) const {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) target[i] = f(i);
  }

  /// Sum over i < n of f(i): a T, or Sums<T, K>.
  template <class F>
  KEEL_HD auto sum(int64_t n, F f) const {
    return sum_as(n, f, decltype(f(int64_t{}))());
  }

  template <class F>
  KEEL_HD auto max(int64_t n, F f) const {
    using T = decltype(f(int64_t{}));
    alignas(64) T partial[kPartials];
    for (T& p : partial) p = -std::numeric_limits<T>::infinity();
    const int64_t whole = n - n % kPartials;
    for (int64_t i = 0; i < whole; i += kPartials)
#pragma omp simd
      for (int p = 0; p < kPartials; ++p) partial[p] = larger(partial[p], f(i + p));
    for (int64_t i = whole; i < n; ++i) partial[i - whole] = larger(partial[i - whole], f(i));
    return fold_partials(partial, [](T a, T b) { return larger(a, b); });
  }

  template <class F>
  KEEL_HD void once(F f) const {
    f();
  }

 private:
  template <class T>
  KEEL_HD static T larger(T a, T b) {
    return b > a ? b : a;
  }

  template <class F, class T>
  KEEL_HD static T sum_as(int64_t n, F f, T) {
    alignas(64) T partial[kPartials] = {};
    const int64_t whole = n - n % kPartials;
    for (int64_t i = 0; i < whole; i += kPartials)
#pragma omp simd
      for (int p = 0; p < kPartials; ++p) partial[p] += f(i + p);
    for (int64_t i = whole; i < n; ++i) partial[i - whole] += f(i);
    return fold_partials(partial, [](T a, T b) { return a + b; });
  }

  // K arrays of partials rather than an array of K: each vectorises like a single sum.
  template <class F, class T, int K>
  KEEL_HD static Sums<T, K> sum_as(int64_t n, F f, Sums<T, K>) {
    alignas(64) T partial[K][kPartials] = {};
    const int64_t whole = n - n % kPartials;
    for (int64_t i = 0; i < whole; i += kPartials)
#pragma omp simd
      for (int p = 0; p < kPartials; ++p) {
        const Sums<T, K> term = f(i + p);
        for (int k = 0; k < K; ++k) partial[k][p] += term.v[k];
      }
    for (int64_t i = whole; i < n; ++i) {
      const Sums<T, K> term = f(i);
      for (int k = 0; k < K; ++k) partial[k][i - whole] += term.v[k];
    }
    Sums<T, K> total;
    for (int k = 0; k < K; ++k)
      total.v[k] = fold_partials(partial[k], [](T a, T b) { return a + b; });
    return total;
  }
};

}  // namespace keel
