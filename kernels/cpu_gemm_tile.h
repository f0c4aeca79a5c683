// What CpuGemm does in registers: a tile of a product, and a transposition. For cpu_gemm.cpp alone,
// which is compiled with contraction on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "vector_register.h"

namespace keel::detail {

using std::int64_t;

// 12 x 2 accumulators, 2 registers of b and 1 of a, of 32; or 6 x 2 of 16.
constexpr int kTileRows = kRegisterBytes == 64 ? 12 : 6;

template <class T>
constexpr int kTileCols = 2 * Vector<T>::kLanes;

constexpr int64_t kAlignment = 64;  // bytes: a cache line

/// This thread's own memory: grows to its largest product, then stays.
template <class T>
T* scratch(std::size_t size) {
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(kAlignment)); }
  };
  thread_local std::unique_ptr<T[], Free> memory;
  thread_local std::size_t held = 0;
  if (held < size) {
    memory.reset();
    held = 0;
    memory.reset(static_cast<T*>(::operator new[](size * sizeof(T), std::align_val_t(kAlignment))));
    held = size;
  }
  return memory.get();
}

/// A tile [kRows, kVectors * kLanes] of alpha a b, added to target or put there. a is read through
/// its two strides; b's rows lie b_stride apart.
template <class T, int kRows, int kVectors>
void tile(int64_t depth, T alpha, const T* a, int64_t a_row, int64_t a_col, const T* b,
          int64_t b_stride, bool add, T* target, int64_t target_stride) {
  using V = Vector<T>;
  typename V::Register sum[kRows][kVectors] = {};
  for (int64_t l = 0; l < depth; ++l) {
    typename V::Register right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = V::load(b + l * b_stride + v * V::kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const T factor = a[r * a_row + l * a_col];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += factor * right[v];
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* to = target + r * target_stride + v * V::kLanes;
      V::store(to, add ? V::load(to) + alpha * sum[r][v] : alpha * sum[r][v]);
    }
}

template <class T, int kVectors, int kRows = kTileRows>
void tile_of(int64_t rows, int64_t depth, T alpha, const T* a, int64_t a_row, int64_t a_col,
             const T* b, int64_t b_stride, bool add, T* target, int64_t target_stride) {
  if (rows == kRows)
    tile<T, kRows, kVectors>(depth, alpha, a, a_row, a_col, b, b_stride, add, target,
                             target_stride);
  else if constexpr (kRows > 1)
    tile_of<T, kVectors, kRows - 1>(rows, depth, alpha, a, a_row, a_col, b, b_stride, add, target,
                                    target_stride);
}

/// to[j][i] = from[i][j] for 8 x 8 floats, in registers: pairs, then quadruples, then halves.
inline void transpose_8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Unaligned __attribute__((vector_size(32), aligned(4)));
  Eight row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i) row[i] = *reinterpret_cast<const Unaligned*>(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int half = 0; half < 8; half += 4)
    for (int i = 0; i < 2; ++i) {
      const Eight a = pair[half + i], b = pair[half + i + 2];
      quad[half + 2 * i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      quad[half + 2 * i + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int j = 0; j < 4; ++j) {
    const Eight a = quad[j], b = quad[j + 4];
    *reinterpret_cast<Unaligned*>(to + j * to_stride) =
        __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Unaligned*>(to + (j + 4) * to_stride) =
        __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace keel::detail
