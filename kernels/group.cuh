// The GPU's groups: part of a warp, a warp, or a block of warps, working on one row. See group.h
// for the vocabulary.
#pragma once

#include "../core/cuda.cuh"
#include "group.h"

#ifdef KEEL_DEVICE_CODE

namespace keel {

/// kMembers threads, whole warps or a part of one; each keeps kSlots elements of a loaded row in
/// registers, so rows of up to kMembers * kSlots elements are read from memory once. kSlots = 0:
/// rows of any length, re-read.
template <int kMembers_, int kSlots_, class Scalar, Runs kRuns = Runs::some>
class CudaGroup {
 public:
  static constexpr int kMembers = kMembers_, kSlots = kSlots_;
  static constexpr int kWide = kRuns == Runs::none ? 1 : 16 / static_cast<int>(sizeof(Scalar));
  static constexpr int kLanes = kMembers < 32 ? kMembers : 32;  // of a warp
  static constexpr int kWarps = kMembers / kLanes;
  static_assert(32 % kLanes == 0 && kMembers % kLanes == 0, "lanes that shuffle by themselves");
  static constexpr bool kStreaming = kSlots == 0, kWhole = kRuns == Runs::whole;

  /// `shared`: kWarps * kMaxSums doubles of the block, unused by a single warp.
  static constexpr int kMaxSums = 4;
  __device__ CudaGroup(int member, double* shared) : member_(member), shared_(shared) {}

  /// Where an element of a row is: its index, and the register slot its owner keeps it in.
  struct Index {
    int i, slot;
    __device__ operator int64_t() const { return i; }
  };

  template <class T>
  struct Registers {
    T slots[kStreaming ? 1 : kSlots];
    __device__ T operator[](Index at) const { return slots[at.slot]; }
    __device__ T& operator[](Index at) { return slots[at.slot]; }
  };

  template <class T>
  __device__ auto load(int64_t n, const T* source) const {
    if constexpr (kStreaming) {
      return source;
    } else {
      Registers<T> row;
      const bool wide = aligned(source);
      runs(static_cast<int>(n), [&](int first, int slot, int left) {
        if (wide && left >= kWide) {
          const Run<T> run = *reinterpret_cast<const Run<T>*>(source + first);
#pragma unroll
          for (int v = 0; v < kWide; ++v) row.slots[slot + v] = run.v[v];
        } else {
#pragma unroll
          for (int v = 0; v < kWide; ++v) row.slots[slot + v] = v < left ? source[first + v] : T(0);
        }
      });
      return row;
    }
  }

  template <class T>
  __device__ auto take(int64_t n, T* home) const {
    if constexpr (kStreaming)
      return home;
    else
      return load<T>(n, home);
  }

  template <class T>
  __device__ auto zeros(int64_t n, T* home) const {
    if constexpr (kStreaming) {
      each(n, [&](Index at) { home[at.i] = 0; });
      return home;
    } else {
      Registers<T> row;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) row.slots[slot] = 0;
      return row;
    }
  }

  template <class T>
  __device__ void flush(int64_t n, const Registers<T>& row, T* home) const {
    store(n, home, [&](Index at) { return row[at]; });
  }
  template <class T>
  __device__ void flush(int64_t, const T*, T*) const {}  // streaming: it was at home all along

  template <class T, class F>
  __device__ void store(int64_t n, T* target, F f) const {
    const bool wide = aligned(target);
    runs(static_cast<int>(n), [&](int first, int slot, int left) {
      if (wide && left >= kWide) {
        Run<T> run;
#pragma unroll
        for (int v = 0; v < kWide; ++v) run.v[v] = f(Index{first + v, slot + v});
        *reinterpret_cast<Run<T>*>(target + first) = run;
      } else {
#pragma unroll
        for (int v = 0; v < kWide; ++v)
          if (v < left) target[first + v] = f(Index{first + v, slot + v});
      }
    });
  }

  template <class F>
  __device__ void each(int64_t n, F f) const {
    runs(static_cast<int>(n), [&](int first, int slot, int left) {
#pragma unroll
      for (int v = 0; v < kWide; ++v)
        if (v < left) f(Index{first + v, slot + v});
    });
  }

  /// Sum over i < n of f(i): a T, or Sums<T, K>. Every member gets it.
  template <class F>
  __device__ auto sum(int64_t n, F f) const {
    using V = decltype(f(Index{}));
    V mine{};
    each(n, [&](Index at) { mine = mine + f(at); });
    return combine(
        mine, [](V a, V b) { return a + b; }, V{});
  }

  template <class F>
  __device__ auto max(int64_t n, F f) const {
    using T = decltype(f(Index{}));
    const T lowest = -std::numeric_limits<T>::infinity();
    T mine = lowest;
    const auto larger = [](T a, T b) { return b > a ? b : a; };
    each(n, [&](Index at) { mine = larger(mine, f(at)); });
    return combine(mine, larger, lowest);
  }

  template <class F>
  __device__ void once(F f) const {
    if (member_ == 0) f();
  }

 private:
  template <class T>
  struct alignas(kWide * sizeof(T)) Run {
    T v[kWide];
  };

  template <class T>
  __device__ static bool aligned(const T* address) {
    // One element always is; but of long rows a branch at each load is what keeps registers few.
    constexpr bool kAlways = kWhole || (kWide == 1 && !kStreaming);
    return kAlways || reinterpret_cast<std::uintptr_t>(address) % sizeof(Run<T>) == 0;
  }

  // Calls f(first index, first slot, left) for every run of kWide indices this member may own: of
  // them the row has the first `left`, all where there are more, none where left is not positive.
  // Never clamped: of max(min(left, kWide), 0) == kWide ptxas 13.0 makes, for sm_90, a VIMNMX.RELU
  // whose predicate an H100 sets wherever left is not negative.
  template <class F>
  __device__ void runs(int n, F f) const {
    if constexpr (kStreaming) {
      for (int first = member_ * kWide; first < n; first += kMembers * kWide)
        f(first, 0, kWhole ? kWide : n - first);
    } else {
      static_assert(kSlots % kWide == 0, "a member keeps whole runs");
#pragma unroll
      for (int run = 0; run < kSlots / kWide; ++run) {
        const int first = (run * kMembers + member_) * kWide;
        if constexpr (kWhole) {
          if (first < n) f(first, run * kWide, kWide);
        } else {
          f(first, run * kWide, n - first);
        }
      }
    }
  }

  // The group's lanes of its warp: another row's may be elsewhere, or have left.
  __device__ unsigned lanes() const {
    if constexpr (kLanes == 32)
      return 0xffffffffu;
    else
      return ((1u << kLanes) - 1) << (threadIdx.x % 32 - static_cast<unsigned>(member_));
  }

  template <class V>
  __device__ V shuffle(V value, int distance) const {
    if constexpr (requires { value.v; }) {
      for (auto& part : value.v) part = __shfl_xor_sync(lanes(), part, distance);
      return value;
    } else {
      return __shfl_xor_sync(lanes(), value, distance);
    }
  }

  template <class V, class Combine>
  __device__ V combine(V value, Combine with, V neutral) const {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
      value = with(value, shuffle(value, distance));
    if constexpr (kWarps > 1) {
      static_assert(sizeof(V) <= kMaxSums * sizeof(double), "too many sums in one pass");
      V* slots = reinterpret_cast<V*>(shared_);
      if (member_ % 32 == 0) slots[member_ / 32] = value;
      __syncthreads();
      const int lane = member_ % 32;  // each warp folds the warps' results by itself
      value = lane < kWarps ? slots[lane] : neutral;
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2)
        value = with(value, shuffle(value, distance));
      __syncthreads();  // before the next reduction overwrites the slots
    }
    return value;
  }

  int member_;
  double* shared_;
};

}  // namespace keel

#endif
