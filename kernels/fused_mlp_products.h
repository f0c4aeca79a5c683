// The matrix products of fused_mlp between two barriers, and the copies that feed them. As in
// factor_gram_block.h: plain code of (thread, shared memory, the thread's registers).
#pragma once

#include "block_phases.h"
#include "factor_gram_block.h"

namespace keel {

KEEL_HD inline int quads_of(int columns) { return (columns + 3) / 4; }

/// Nothing; but a GPU's compiler computes addresses anew from here on. It would keep those of all
/// phases in registers, where there are none to spare.
KEEL_HD inline void forget_addresses([[maybe_unused]] int& id) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(id));
#endif
}

/// Activations and their derivatives lie row-major in shared memory, rows kStride apart; weights
/// [outputs, inputs] pass through two slots in chunks of kChunk columns, or of kChunk rows.
/// Warps are laid out by WarpLayout.
class FusedProducts {
 public:
  static constexpr int kThreads = 256, kMost = 128, kStride = kMost + 4;
  static constexpr int kChunk = 16, kSlot = kChunk * kMost, kStages = 2;

  /// Row q of a thread's rows in a product of kTileRows rows; its first row is row_of(id, 0).
  template <int kTileRows>
  KEEL_HD static int row_of(int id, int q) {
    return id / 128 * (kTileRows / 2) + 4 * q + WarpLayout::down(id);
  }
  /// Its columns: apart in forward, where weights are read along their rows, a run in backward.
  KEEL_HD static int forward_col(int id, int c) {
    return id / 32 % 4 * 32 + c * 8 + WarpLayout::across(id);
  }
  KEEL_HD static int backward_col(int id) { return id / 32 % 4 * 32 + WarpLayout::across(id) * 4; }

  /// Columns [first, first + kChunk) of the weights [outputs, inputs], all rows; columns that fill
  /// up the last four are zeros.
  KEEL_HD static void copy_columns(int id, const float* weight, int outputs, int inputs, int first,
                                   float* slot) {
    if (inputs % 4 == 0) {
      KEEL_UNROLL
      for (int pass = 0; pass < kSlot / 4 / kThreads; ++pass) {
        const int word = id + pass * kThreads, o = word / 4, k = word % 4 * 4;
        if (o < outputs && first + k < inputs)
          copy_async(slot + column_at(o, k), weight + o * inputs + first + k);
      }
      return;
    }
    for (int element = id; element < kSlot; element += kThreads) {
      const int o = element / kChunk, k = element % kChunk;
      if (o >= outputs || first + k >= 4 * quads_of(inputs)) continue;
      float* to = slot + column_at(o, k / 4 * 4) + k % 4;
      if (first + k < inputs)
        copy_word_async(to, weight + o * inputs + first + k);
      else
        *to = 0;
    }
  }

  /// Rows [first, first + kChunk) of them, all columns; rows that fill up the last four are zeros.
  KEEL_HD static void copy_rows(int id, const float* weight, int outputs, int inputs, int first,
                                float* slot) {
    const int last = 4 * quads_of(outputs) - first;
    if (inputs % 4 == 0) {
      KEEL_UNROLL
      for (int pass = 0; pass < kSlot / 4 / kThreads; ++pass) {
        const int word = id + pass * kThreads, k = word / 32, i = word % 32 * 4;
        if (i >= inputs || k >= last) continue;
        if (first + k < outputs)
          copy_async(slot + k * kMost + i, weight + (first + k) * inputs + i);
        else
          put_shared(slot + k * kMost + i, Quad{});
      }
      return;
    }
    for (int element = id; element < kSlot; element += kThreads) {
      const int k = element / kMost, i = element % kMost;
      if (i >= inputs || k >= last) continue;
      if (first + k < outputs)
        copy_word_async(slot + element, weight + (first + k) * inputs + i);
      else
        slot[element] = 0;
    }
  }

  /// sum[q][c] += in[row q, k] weight[forward_col(c), k] over `quads` fours of k: `in` points at
  /// the chunk's first column, the slot holds copy_columns.
  template <int kTileRows>
  KEEL_HD static void forward(float (&sum)[kTileRows / 8][4], int id, const float* in, int stride,
                              const float* slot, int quads, int outputs) {
    if (id / 32 % 4 * 32 >= outputs) return;  // whole warps
    const float* rows = in + row_of<kTileRows>(id, 0) * stride;
    // Outputs 8 apart have their fours alike: an address a step, and a constant distance from it.
    const int first = forward_col(id, 0);
    const float* weight = slot + first * kChunk;
    each_four(quads, [&](int u) {
      const float* at = weight + four_at(first, u);
      Quad w[4];
      KEEL_UNROLL
      for (int c = 0; c < 4; ++c) w[c] = quad(at + 8 * c * kChunk);
      KEEL_UNROLL
      for (int q = 0; q < kTileRows / 8; ++q) {
        const Quad a = quad(rows + 4 * q * stride + 4 * u);
        KEEL_UNROLL
        for (int k = 0; k < 4; ++k) {
          KEEL_UNROLL
          for (int c = 0; c < 4; ++c) sum[q][c] += a.v[k] * w[c].v[k];
        }
      }
    });
  }

  /// sum[q][c] += delta[row q, k] weight[k, backward_col + c]: the slot holds copy_rows.
  template <int kTileRows>
  KEEL_HD static void backward(float (&sum)[kTileRows / 8][4], int id, const float* delta,
                               const float* slot, int quads, int inputs) {
    if (id / 32 % 4 * 32 >= inputs) return;
    const float* rows = delta + row_of<kTileRows>(id, 0) * kStride;
    const float* weight = slot + backward_col(id);
    each_four(quads, [&](int u) {
      Quad w[4];
      KEEL_UNROLL
      for (int k = 0; k < 4; ++k) w[k] = quad(weight + (4 * u + k) * kMost);
      KEEL_UNROLL
      for (int q = 0; q < kTileRows / 8; ++q) {
        const Quad d = quad(rows + 4 * q * kStride + 4 * u);
        KEEL_UNROLL
        for (int k = 0; k < 4; ++k) {
          KEEL_UNROLL
          for (int c = 0; c < 4; ++c) sum[q][c] += d.v[k] * w[k].v[c];
        }
      }
    });
  }

  /// Where sum[8][8] of a thread lies in a gradient [128, 128]: four rows and four columns from
  /// here, and again 16 rows and 32 columns further.
  KEEL_HD static int outer_row(int id, int r) {
    return id / 64 * 32 + r / 4 * 16 + WarpLayout::down(id) * 4 + r % 4;
  }
  KEEL_HD static int outer_col(int id, int run) {
    return id / 32 % 2 * 64 + run * 32 + WarpLayout::across(id) * 4;
  }

  /// sum[r][c] += delta[row, o] in[row, i] over the tile's rows.
  template <int kTileRows>
  KEEL_HD static void outer(float (&sum)[8][8], int id, const float* delta, const float* in,
                            int stride, int outputs, int inputs) {
    const int o = outer_row(id, 0), i = outer_col(id, 0), last = 4 * (quads_of(inputs) - 1);
    if (id / 64 * 32 >= outputs || id / 32 % 2 * 64 >= inputs) return;
    const float* left = delta + o;
    const float* near = in + (i < last ? i : last);
    const float* far = in + (i + 32 < last ? i + 32 : last);
#ifdef __CUDA_ARCH__
#pragma unroll 2  // registers are short
#endif
    for (int row = 0; row < kTileRows; ++row) {
      const Quad d[2] = {quad(left + row * kStride), quad(left + row * kStride + 16)};
      const Quad a[2] = {quad(near + row * stride), quad(far + row * stride)};
      KEEL_UNROLL
      for (int r = 0; r < 8; ++r) {
        KEEL_UNROLL
        for (int c = 0; c < 8; ++c) sum[r][c] += d[r / 4].v[r % 4] * a[c / 4].v[c % 4];
      }
    }
  }

  // Few inputs: a warp takes four of them, all outputs, and every splits-th row.
  static constexpr int kNarrow = 32;
  KEEL_HD static int splits(int inputs) { return 8 / quads_of(inputs); }

  template <int kTileRows>
  KEEL_HD static void outer_narrow(float (&sum)[4][4], int id, const float* delta, const float* in,
                                   int stride, int inputs) {
    const int warp = id / 32, split = warp / quads_of(inputs);
    if (split >= splits(inputs)) return;
    const float* left = delta + id % 32 * 4;
    const float* right = in + warp % quads_of(inputs) * 4;
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
    for (int row = split; row < kTileRows; row += splits(inputs)) {
      const Quad d = quad(left + row * kStride), a = quad(right + row * stride);
      KEEL_UNROLL
      for (int r = 0; r < 4; ++r) {
        KEEL_UNROLL
        for (int c = 0; c < 4; ++c) sum[r][c] += d.v[r] * a.v[c];
      }
    }
  }

 private:
  /// f(u) for each of the chunk's fours. Whole chunks ask nothing between two: a GPU's compiler
  /// then loads the next while one is multiplied.
  template <class F>
  KEEL_HD static void each_four(int quads, F f) {
    if (quads >= kChunk / 4) {
      KEEL_UNROLL
      for (int u = 0; u < kChunk / 4; ++u) f(u);
      return;
    }
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int u = 0; u < quads; ++u) f(u);
  }

  // Fours of a row change places, so that eight rows one after another are in different banks.
  KEEL_HD static int four_at(int o, int u) { return (u ^ (o >> 1 & 3)) * 4; }
  KEEL_HD static int column_at(int o, int k) { return o * kChunk + four_at(o, k / 4); }
};

}  // namespace keel
