// fused_mlp backward: from a tile's errors to the sums of its gradient.
#pragma once

#include "fused_mlp_weights.h"

namespace keel {

template <int kTileRows, bool kKeep, bool kPlain>
class FusedBackward : public FusedWeights<kTileRows, kKeep> {
  using Tile = FusedTile<kTileRows>;
  using Weights = FusedWeights<kTileRows, kKeep>;
  using Products = FusedProducts;
  using Tile::col_of;
  using Tile::copy_forward;
  using Tile::deviation_at;
  using Tile::each_quad;
  using Tile::each_quad_rolled;
  using Tile::end_;
  using Tile::error_at;
  using Tile::first_;
  using Tile::hidden;
  using Tile::hidden_at;
  using Tile::kChunk;
  using Tile::kept;
  using Tile::kPasses;
  using Tile::kStride;
  using Tile::kThreads;
  using Tile::layer;
  using Tile::out_weight_at;
  using Tile::parameter;
  using Tile::part;
  using Tile::row_of;
  using Tile::slice_;
  using Tile::stage_at;
  using Tile::start_product;
  using Tile::stats_at;
  using Tile::store_stats;
  using Tile::sum8;
  using Tile::task_;
  using Tile::values;
  using Tile::vector_at;
  using typename Tile::Thread;
  using Weights::add_bias;
  using Weights::add_weight;
  using Weights::store_column_sums;
  using Weights::sum_columns;

 public:
  KEEL_HD explicit FusedBackward(const Tile& tile) : Weights(tile) {}

  KEEL_HD void output_gradient(Thread& t, int64_t tile) const {
    const bool begins = tile == first_;
    forget_addresses(t.id);
    const FusedLayer& out = layer(hidden());
    const FusedParameter& weight = parameter(hidden(), FusedParameter::kWeight);
    const int i = t.id % 128;
    for (int k = t.id / 128; k < out.outputs && i < out.inputs; k += 2) {
      float* to = slice_ + weight.part + k * weight.stride + i;
      Weights::template add_column<kTileRows>(
          hidden_at(hidden() - 1) + i, kStride, to, begins,
          [&](float a, int row) { return error_at(row)[k] * a; });
    }
    const int k = kThreads - 1 - t.id;  // the second half has less to do where outputs are few
    if (k >= out.outputs) return;
    const float* errors = error_at(0) + k;
    Weights::template add_column<kTileRows>(errors, out.outputs,
                                            part(hidden(), FusedParameter::kBias) + k, begins,
                                            [](float e, int) { return e; });
    Weights::template add_column<kTileRows>(errors, out.outputs, slice_ + task_.loss_part + k,
                                            begins, [](float e, int) { return e * e; });
  }

  template <class Each>
  KEEL_HD void run(Each each, int l, int& stage, int64_t tile) const {
    const bool begins = tile == first_;
    if (layer(l).norm) {
      each([&](Thread& t) { sum_derivatives(t, l); });
      each([&](Thread& t) { pull_norm(t, l, begins); });
      if (layer(l).affine && (kPlain || layer(l).centred)) {
        each([&](Thread& t) { store_column_sums(t, layer(l).outputs, t.shift_sum); });
        each([&](Thread& t) { sum_columns(t, l, FusedParameter::kShift, begins); });
      }
    } else {
      each([&](Thread& t) { pull_plain(t, l); });
    }
    each([&](Thread& t) {
      if (l > 0)
        copy_backward(t, l, 0, stage);
      else if (tile + 1 < end_)
        copy_forward(t, 0, 0, stage);
      add_bias(t, l, begins);
      add_weight(t, l, begins);
    });
    if (l == 0) return;
    const int quads = quads_of(layer(l).outputs), chunks = (quads + 3) / 4;
    for (int chunk = 0; chunk < chunks; ++chunk, stage ^= 1) {
      each([&](Thread& t) {
        if (chunk == 0) start_product(t);
        if (chunk + 1 < chunks) copy_backward(t, l, chunk + 1, stage ^ 1);
        Products::backward<kTileRows>(t.tile, t.id, hidden_at(l) + chunk * kChunk, stage_at(stage),
                                      quads - 4 * chunk, layer(l).inputs);
      });
    }
    each([&](Thread& t) { store_backward(t, l); });
  }

 private:
  KEEL_HD void copy_backward(Thread& t, int l, int chunk, int stage) const {
    Products::copy_rows(t.id, values(l, FusedParameter::kWeight), layer(l).outputs, layer(l).inputs,
                        chunk * kChunk, stage_at(stage));
  }

  // Derivative by what layer l put out: from the errors, or left by the layer behind in its place.
  KEEL_HD Quad derivative(int l, int row, int col) const {
    if (l + 1 < hidden()) return quad(hidden_at(l + 1) + row * kStride + col);
    const float scale = task_.error_scale * parameter(hidden(), FusedParameter::kWeight).scale;
    Quad d{};
    KEEL_ROLLED
    for (int k = 0; k < layer(hidden()).outputs; ++k) {
      const Quad w = quad(out_weight_at(k) + col);
      const float e = scale * error_at(row)[k];
      KEEL_UNROLL
      for (int c = 0; c < 4; ++c) d.v[c] += e * w.v[c];
    }
    return d;
  }

  // All but relu's: the derivative by what the activation was given takes the place of what it put
  // out, which it may be made of.
  KEEL_HD void pull_activation(Thread& t, int l) const {
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    each_quad_rolled(t, cols, [&](int p, int j, int row, int col) {
      float* at = hidden_at(l) + row * kStride + col;
      const Quad a = quad(at);
      Quad d = derivative(l, row, col);
      layer(l).activation.visit([&](auto function) {
        const Quad saved = function.kSaves == Saves::output ? a : given(t, l, p, j);
        KEEL_UNROLL
        for (int e = 0; e < 4; ++e)
          d.v[e] = col + e < cols ? d.v[e] * function.derivative(saved.v[e]) : 0;
      });
      put_shared(at, d);
    });
  }

  // What the activation was given: kept, or made once more of what a norm kept.
  KEEL_HD Quad given(const Thread& t, int l, int p, int j) const {
    const Quad xhat = *kept(t, l, p, j);
    if (!layer(l).norm) return xhat;
    const Quad gain = quad(vector_at(l, FusedParameter::kGain) + col_of(t, j));
    const Quad shift = quad(vector_at(l, FusedParameter::kShift) + col_of(t, j));
    Quad z;
    KEEL_UNROLL
    for (int e = 0; e < 4; ++e) z.v[e] = multiply_add(xhat.v[e], gain.v[e], shift.v[e]);
    return z;
  }

  KEEL_HD void pull_plain(Thread& t, int l) const {
    if (!kPlain && layer(l).curved()) return pull_activation(t, l);
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    const bool relu = layer(l).relu();
    each_quad(t, cols, [&](int, int, int row, int col) {
      float* at = hidden_at(l) + row * kStride + col;
      const Quad a = quad(at);
      Quad d = derivative(l, row, col);
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e)
        if (col + e >= cols || (relu && a.v[e] <= 0)) d.v[e] = 0;
      put_shared(at, d);
    });
  }

  // Rows' sums of d_xhat and d_xhat xhat; columns' sums of d_z xhat over the thread's rows.
  KEEL_HD void sum_derivatives(Thread& t, int l) const {
    const bool pulled = !kPlain && layer(l).curved();
    if (pulled) pull_activation(t, l);  // values of its own, no barrier
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    const bool relu = layer(l).relu();
    float plain[kPasses] = {}, weighted[kPasses] = {};
    Quad gain_sum[4] = {};
    KEEL_UNROLL
    for (int j = 0; j < 4; ++j) t.shift_sum[j] = Quad{};
    each_quad(t, cols, [&](int p, int j, int row, int col) {
      const Quad xhat = *kept(t, l, p, j);
      const Quad gain = quad(vector_at(l, FusedParameter::kGain) + col);
      const Quad shift = quad(vector_at(l, FusedParameter::kShift) + col);
      Quad d = pulled ? quad(hidden_at(l) + row * kStride + col) : derivative(l, row, col);
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e) {
        const bool stopped = relu && multiply_add(xhat.v[e], gain.v[e], shift.v[e]) <= 0;
        if (stopped || col + e >= cols) d.v[e] = 0;
        t.shift_sum[j].v[e] += d.v[e];
        gain_sum[j].v[e] += d.v[e] * xhat.v[e];
        d.v[e] *= gain.v[e];
        plain[p] += d.v[e];
        weighted[p] += d.v[e] * xhat.v[e];
      }
      t.value[p][j] = xhat;
      put_shared(hidden_at(l) + row * kStride + col, d);  // nobody reads the activations any more
    });
    store_stats(t, 0, plain);
    store_stats(t, 1, weighted);
    if (layer(l).affine) store_column_sums(t, cols, gain_sum);
  }

  KEEL_HD void pull_norm(Thread& t, int l, bool begins) const {
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    float mean_d[kPasses], mean_dx[kPasses], scale[kPasses];
    KEEL_UNROLL
    for (int p = 0; p < kPasses; ++p) {
      mean_d[p] = kPlain || layer(l).centred
                      ? sum8(stats_at(0, row_of(t, p))) / static_cast<float>(cols)
                      : 0;  // no mean was taken away
      mean_dx[p] = sum8(stats_at(1, row_of(t, p))) / static_cast<float>(cols);
      scale[p] = deviation_at(l)[row_of(t, p)];
    }
    each_quad(t, cols, [&](int p, int j, int row, int col) {
      float* at = hidden_at(l) + row * kStride + col;
      Quad d = quad(at);
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float pulled = scale[p] * (d.v[e] - mean_d[p] - t.value[p][j].v[e] * mean_dx[p]);
        d.v[e] = col + e < cols ? pulled : 0;
      }
      put_shared(at, d);
    });
    if (layer(l).affine) sum_columns(t, l, FusedParameter::kGain, begins);
  }

  // The derivative by the layer's inputs takes the place of that by its outputs.
  KEEL_HD void store_backward(const Thread& t, int l) const {
    const float scale = parameter(l, FusedParameter::kWeight).scale;
    const int i = Products::backward_col(t.id);
    if (i >= layer(l).inputs) return;
    KEEL_UNROLL
    for (int q = 0; q < kTileRows / 8; ++q) {
      Quad d;
      KEEL_UNROLL
      for (int c = 0; c < 4; ++c) d.v[c] = scale * t.tile[q][c];
      put_shared(hidden_at(l) + Products::row_of<kTileRows>(t.id, q) * kStride + i, d);
    }
  }
};

}  // namespace keel
