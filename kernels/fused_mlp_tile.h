// What a block of fused_mlp works with: its tiles of rows, its slice, its shared memory, and what a
// thread keeps in registers.
#pragma once

#include "fused_mlp.h"
#include "fused_mlp_products.h"

namespace keel {

/// Between products eight threads share a row: thread q of them has columns 4 q + 32 j + 0..3.
template <int kTileRows>
class FusedTile {
 public:
  using Products = FusedProducts;
  static constexpr int kThreads = Products::kThreads;
  static constexpr int kStride = Products::kStride, kChunk = Products::kChunk;
  static constexpr int kPasses = kTileRows / 32;  // rows of a thread, 32 apart

  struct Thread {
    int id;
    float tile[kTileRows / 8][4];  // of the product under way
    float wide[8][8];              // of the gradient of wide weights
    float narrow[4][4];            // and of narrow ones, of all tiles
    // From phase to phase of a layer norm: values of the thread's rows, sums of its columns.
    Quad value[kTileRows / 32][4], shift_sum[4];
  };

  KEEL_HD FusedTile(const FusedTask& task, int64_t slot, float* shared)
      : task_(task), shared_(shared), slot_(slot), member_(slot / task.member_slots) {
    first_ = slot % task.member_slots * task.slot_tiles;
    end_ = first_ + task.slot_tiles < task.tiles ? first_ + task.slot_tiles : task.tiles;
    slice_ = task.slices + slot * task.slice;
  }

  /// The step that the second kernel will take: one thread of all, and nobody reads it before.
  KEEL_HD void count_step(const Thread& t) const {
    if (slot_ == 0 && t.id == 0 && task_.updates()) task_.update.clock.tick();
  }

  KEEL_HD int64_t first() const { return first_; }  // of the slot's tiles
  KEEL_HD int64_t end() const { return end_; }
  KEEL_HD int hidden() const { return task_.net.hidden; }
  KEEL_HD const FusedLayer& layer(int l) const { return task_.net.layers[l]; }
  KEEL_HD const FusedParameter& parameter(int l, int kind) const {
    return task_.net.parameters[FusedParameter::kKinds * l + kind];
  }
  KEEL_HD const float* values(int l, int kind) const {  // of a parameter, this member's
    const FusedParameter& p = parameter(l, kind);
    return task_.parameters + p.flat + member_ * p.rows * p.cols;
  }
  KEEL_HD float* part(int l, int kind) const { return slice_ + parameter(l, kind).part; }
  KEEL_HD bool narrow() const { return layer(0).inputs <= Products::kNarrow; }

  // Shared memory. hidden_at(l): activations, then derivatives, of layer l [kTileRows, kStride].
  KEEL_HD float* stage_at(int stage) const {
    return shared_ + task_.at.stage + stage * Products::kSlot;
  }
  KEEL_HD float* hidden_at(int l) const {
    return shared_ + task_.at.hidden + l * kTileRows * kStride;
  }
  KEEL_HD float* x_at() const { return shared_ + task_.at.x; }
  KEEL_HD const float* input_at(int l) const { return l == 0 ? x_at() : hidden_at(l - 1); }
  KEEL_HD int input_stride(int l) const { return l == 0 ? task_.at.x_stride : kStride; }
  KEEL_HD float* stats_at(int which, int row) const {
    return shared_ + task_.at.stats + (which * kTileRows + row) * 8;
  }
  KEEL_HD float* deviation_at(int l) const { return shared_ + task_.at.deviation + l * kTileRows; }
  KEEL_HD float* error_at(int row) const {
    return shared_ + task_.at.error + row * layer(hidden()).outputs;
  }
  // Bias (scaled), gain and shift of a hidden layer; gain 1 and shift 0 where it has none.
  KEEL_HD float* vector_at(int l, int kind) const {
    return shared_ + task_.at.vectors + (3 * l + kind - 1) * kStride;
  }
  KEEL_HD float* out_weight_at(int k) const { return shared_ + task_.at.out + k * kStride; }
  KEEL_HD float* out_bias_at() const { return out_weight_at(layer(hidden()).outputs); }

  KEEL_HD static int row_of(const Thread& t, int p) { return t.id / 8 + 32 * p; }
  KEEL_HD static int col_of(const Thread& t, int j) { return t.id % 8 * 4 + 32 * j; }

  // f(p, j, row, col) for the thread's fours of columns.
  template <class F>
  KEEL_HD static void each_quad(const Thread& t, int cols, F f) {
    KEEL_UNROLL
    for (int p = 0; p < kPasses; ++p) {
      KEEL_UNROLL
      for (int j = 0; j < 4; ++j)
        if (col_of(t, j) < cols) f(p, j, row_of(t, p), col_of(t, j));
    }
  }

  // The same, one after another.
  template <class F>
  KEEL_HD static void each_quad_rolled(const Thread& t, int cols, F f) {
    KEEL_ROLLED
    for (int n = 0; n < 4 * kPasses; ++n) {
      const int p = n / 4, j = n % 4;
      if (col_of(t, j) < cols) f(p, j, row_of(t, p), col_of(t, j));
    }
  }

  template <int kRows, int kCols>
  KEEL_HD static void clear(float (&sums)[kRows][kCols]) {
    KEEL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      KEEL_UNROLL
      for (int c = 0; c < kCols; ++c) sums[r][c] = 0;
    }
  }

  KEEL_HD static void start_product(Thread& t) {
    forget_addresses(t.id);
    clear(t.tile);
  }

  KEEL_HD void copy_forward(Thread& t, int l, int chunk, int stage) const {
    Products::copy_columns(t.id, values(l, FusedParameter::kWeight), layer(l).outputs,
                           layer(l).inputs, chunk * kChunk, stage_at(stage));
  }

  KEEL_HD static float sum8(const float* partial) {
    const Quad a = quad(partial), b = quad(partial + 4);
    return ((a.v[0] + a.v[1]) + (a.v[2] + a.v[3])) + ((b.v[0] + b.v[1]) + (b.v[2] + b.v[3]));
  }

  KEEL_HD void store_stats(const Thread& t, int which, const float (&sum)[kPasses]) const {
    KEEL_UNROLL
    for (int p = 0; p < kPasses; ++p) stats_at(which, row_of(t, p))[t.id % 8] = sum[p];
  }

  // Where a thread keeps its standardised values until backward: its own, in the workspace.
  KEEL_HD Quad* kept(const Thread& t, int l, int p, int j) const {
    const int64_t block = (slot_ * hidden() + l) * kPasses * 4 + p * 4 + j;
    return reinterpret_cast<Quad*>(task_.kept) + block * kThreads + t.id;
  }

 protected:
  const FusedTask& task_;
  float* shared_;
  float* slice_;
  int64_t slot_, member_, first_, end_;
};

}  // namespace keel
