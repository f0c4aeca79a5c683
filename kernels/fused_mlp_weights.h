// fused_mlp's sums over rows: of the weights' and vectors' gradients, of a tile and from tile to
// tile.
#pragma once

#include "fused_mlp_tile.h"

namespace keel {

template <int kTileRows, bool kKeep>
class FusedWeights : public FusedTile<kTileRows> {
 protected:
  using Tile = FusedTile<kTileRows>;
  using Products = FusedProducts;
  using Tile::clear;
  using Tile::col_of;
  using Tile::hidden;
  using Tile::hidden_at;
  using Tile::input_at;
  using Tile::input_stride;
  using Tile::kStride;
  using Tile::kThreads;
  using Tile::layer;
  using Tile::narrow;
  using Tile::parameter;
  using Tile::part;
  using Tile::slice_;
  using Tile::stage_at;
  using typename Tile::Thread;

 public:
  KEEL_HD explicit FusedWeights(const Tile& tile) : Tile(tile) {}

  KEEL_HD void store_wide(const Thread& t) const {
    if (kKeep && (hidden() > 1 || !narrow())) store_outer(t, hidden() - 1, true);
    if (!narrow()) return;
    KEEL_UNROLL
    for (int r = 0; r < 4; ++r) {
      Quad sums;
      KEEL_UNROLL
      for (int c = 0; c < 4; ++c) sums.v[c] = t.narrow[r][c];
      put_shared(stage_at(0) + t.id * 16 + 4 * r, sums);
    }
  }

  KEEL_HD void store_narrow(const Thread& t) const {
    if (!narrow()) return;
    const FusedParameter& weight = parameter(0, FusedParameter::kWeight);
    const int quads = quads_of(weight.cols), splits = Products::splits(weight.cols);
    for (int e = t.id; e < weight.rows * quads; e += kThreads) {
      const int o = e / quads, u = e % quads;
      Quad total{};
      for (int split = 0; split < splits; ++split) {
        const int id = (split * quads + u) * 32 + o / 4;
        const Quad sums = quad(stage_at(0) + id * 16 + o % 4 * 4);
        KEEL_UNROLL
        for (int c = 0; c < 4; ++c) total.v[c] += sums.v[c];
      }
      quad(slice_ + weight.part + o * weight.stride + 4 * u) = total;
    }
  }

 protected:
  // [32][128] in the stages: of every 32nd row.
  KEEL_HD void store_column_sums(const Thread& t, int cols, const Quad (&sums)[4]) const {
    KEEL_UNROLL
    for (int j = 0; j < 4; ++j)
      if (col_of(t, j) < cols) put_shared(stage_at(0) + t.id / 8 * 128 + col_of(t, j), sums[j]);
  }

  KEEL_HD void sum_columns(const Thread& t, int l, int kind, bool begins) const {
    if (t.id < layer(l).outputs)
      add_column<32>(stage_at(0) + t.id, 128, part(l, kind) + t.id, begins,
                     [](float sum, int) { return sum; });
  }

  // Adds term(from[row], row) of all rows to an element of the slice, or begins it.
  template <int kRows, class Term>
  KEEL_HD static void add_column(const float* from, int stride, float* to, bool begins, Term term) {
    const float before = begins ? 0 : *to;
    float sum[4] = {};
#ifdef __CUDA_ARCH__
#pragma unroll 2  // registers are short
#endif
    for (int row = 0; row < kRows; row += 4) {
      KEEL_UNROLL
      for (int r = 0; r < 4; ++r) sum[r] += term(from[(row + r) * stride], row + r);
    }
    *to = before + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }

  KEEL_HD void add_bias(const Thread& t, int l, bool begins) const {
    if (t.id < layer(l).outputs)
      add_column<kTileRows>(hidden_at(l) + t.id, kStride, part(l, FusedParameter::kBias) + t.id,
                            begins, [](float d, int) { return d; });
  }

  KEEL_HD void add_weight(Thread& t, int l, bool begins) const {
    const FusedLayer& at = layer(l);
    const float *delta = hidden_at(l), *in = input_at(l);
    if (l == 0 && narrow())
      return Products::outer_narrow<kTileRows>(t.narrow, t.id, delta, in, input_stride(l),
                                               at.inputs);
    if (!kKeep) clear(t.wide);
    Products::outer<kTileRows>(t.wide, t.id, delta, in, input_stride(l), at.outputs, at.inputs);
    if (!kKeep) store_outer(t, l, begins);
  }

 private:
  KEEL_HD void store_outer(const Thread& t, int l, bool begins) const {
    const FusedParameter& weight = parameter(l, FusedParameter::kWeight);
    KEEL_UNROLL
    for (int r = 0; r < 8; ++r) {
      const int o = Products::outer_row(t.id, r);
      KEEL_UNROLL
      for (int run = 0; run < 2; ++run) {
        const int i = Products::outer_col(t.id, run);
        if (o >= weight.rows || i >= weight.cols) continue;
        Quad& to = quad(slice_ + weight.part + o * weight.stride + i);
        Quad total = begins ? Quad{} : to;
        KEEL_UNROLL
        for (int e = 0; e < 4; ++e) total.v[e] += t.wide[r][4 * run + e];
        to = total;
      }
    }
  }
};

}  // namespace keel
