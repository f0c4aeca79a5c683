// fused_mlp forward: from a tile's rows to its errors.
#pragma once

#include "fused_mlp_tile.h"

namespace keel {

template <int kTileRows, bool kPlain>
class FusedForward : public FusedTile<kTileRows> {
  using Tile = FusedTile<kTileRows>;
  using Products = FusedProducts;
  using Tile::clear;
  using Tile::copy_forward;
  using Tile::deviation_at;
  using Tile::each_quad;
  using Tile::each_quad_rolled;
  using Tile::error_at;
  using Tile::hidden;
  using Tile::hidden_at;
  using Tile::input_at;
  using Tile::input_stride;
  using Tile::kChunk;
  using Tile::kept;
  using Tile::kPasses;
  using Tile::kStride;
  using Tile::kThreads;
  using Tile::layer;
  using Tile::member_;
  using Tile::out_bias_at;
  using Tile::out_weight_at;
  using Tile::parameter;
  using Tile::row_of;
  using Tile::stage_at;
  using Tile::start_product;
  using Tile::stats_at;
  using Tile::store_stats;
  using Tile::sum8;
  using Tile::task_;
  using Tile::values;
  using Tile::vector_at;
  using Tile::x_at;
  using typename Tile::Thread;

 public:
  KEEL_HD explicit FusedForward(const Tile& tile) : Tile(tile) {}

  KEEL_HD void begin(Thread& t) const {
    clear(t.wide);
    clear(t.narrow);
    for (int l = 0; l < hidden(); ++l)
      for (int kind = FusedParameter::kBias; kind <= FusedParameter::kShift; ++kind)
        for (int c = t.id; c < kStride; c += kThreads) vector_at(l, kind)[c] = element(l, kind, c);
    const FusedLayer& out = layer(hidden());
    const float* weight = values(hidden(), FusedParameter::kWeight);
    for (int e = t.id; e < out.outputs * kStride; e += kThreads) {
      const int k = e / kStride, i = e % kStride;
      out_weight_at(0)[e] = i < out.inputs ? weight[k * out.inputs + i] : 0;
    }
    for (int k = t.id; k < out.outputs; k += kThreads)
      out_bias_at()[k] = element(hidden(), FusedParameter::kBias, k);
    copy_forward(t, 0, 0, 0);
  }

  // x and y; rows and columns that fill up are zeros.
  KEEL_HD void load_rows(Thread& t, int64_t tile) const {
    forget_addresses(t.id);
    const int inputs = layer(0).inputs, cols = 4 * quads_of(inputs);
    const int outputs = layer(hidden()).outputs;
    const int64_t begin = tile * kTileRows;
    const int64_t rows = task_.rows - begin;
    const float* x = task_.x + member_ * task_.x_stride + begin * inputs;
    for (int e = t.id; e < kTileRows * cols; e += kThreads) {
      const int row = e / cols, i = e % cols;
      float* to = x_at() + row * task_.at.x_stride + i;
      if (row < rows && i < inputs)
        copy_word_async(to, x + row * inputs + i);
      else
        *to = 0;
    }
    const float* y = task_.y + member_ * task_.y_stride + begin * outputs;
    for (int e = t.id; e < kTileRows * outputs; e += kThreads)
      error_at(0)[e] = e < rows * outputs ? y[e] : 0;
  }

  /// `stage`: where the next chunk lies, or will.
  template <class Each>
  KEEL_HD void run(Each each, int l, int& stage) const {
    const int quads = quads_of(layer(l).inputs), chunks = (quads + 3) / 4;
    for (int chunk = 0; chunk < chunks; ++chunk, stage ^= 1) {
      each([&](Thread& t) {
        if (chunk == 0) start_product(t);
        if (chunk + 1 < chunks)
          copy_forward(t, l, chunk + 1, stage ^ 1);
        else if (l + 1 < hidden())
          copy_forward(t, l + 1, 0, stage ^ 1);
        Products::forward<kTileRows>(t.tile, t.id, input_at(l) + chunk * kChunk, input_stride(l),
                                     stage_at(stage), quads - 4 * chunk, layer(l).outputs);
        if (chunk + 1 == chunks) store_forward(t, l);
      });
    }
    if (layer(l).norm) {
      each([&](Thread& t) { sum_row(t, l); });
      each([&](Thread& t) { sum_squares(t, l); });
      each([&](Thread& t) { normalise(t, l); });
    } else if (!kPlain && layer(l).curved()) {
      each([&](Thread& t) { activate(t, l); });
    }
  }

  // Eighths of every row's prediction: [outputs][kTileRows][8] in the stages.
  KEEL_HD void predict(Thread& t) const {
    forget_addresses(t.id);
    const FusedLayer& out = layer(hidden());
    const float* a = hidden_at(hidden() - 1);
    KEEL_ROLLED
    for (int k = 0; k < out.outputs; ++k) {
      float sum[kPasses] = {};
      each_quad(t, out.inputs, [&](int p, int, int row, int col) {
        const Quad w = quad(out_weight_at(k) + col), values = quad(a + row * kStride + col);
        KEEL_UNROLL
        for (int e = 0; e < 4; ++e) sum[p] += values.v[e] * w.v[e];
      });
      KEEL_UNROLL
      for (int p = 0; p < kPasses; ++p)
        stage_at(0)[(k * kTileRows + row_of(t, p)) * 8 + t.id % 8] = sum[p];
    }
  }

  KEEL_HD void compare(Thread& t, int64_t tile) const {
    const int outputs = layer(hidden()).outputs;
    const int64_t rows = task_.rows - tile * kTileRows;
    const float scale = parameter(hidden(), FusedParameter::kWeight).scale;
    for (int e = t.id; e < kTileRows * outputs; e += kThreads) {
      const int row = e / outputs, k = e % outputs;
      const float sum = sum8(stage_at(0) + (k * kTileRows + row) * 8);
      const float prediction = multiply_add(scale, sum, out_bias_at()[k]);
      error_at(0)[e] = row < rows ? prediction - error_at(0)[e] : 0;
    }
  }

 private:
  KEEL_HD float element(int l, int kind, int c) const {
    const FusedParameter& p = parameter(l, kind);
    if (c >= layer(l).outputs) return 0;
    if (p.rows == 0) return kind == FusedParameter::kGain ? 1 : 0;
    return p.scale * values(l, kind)[c];
  }

  // All but relu, which is taken in registers: of values in shared memory; keeps them, too, where
  // backward will ask for them and no norm has kept what they are made of. One four after another:
  // written out, ten activations would be more code than all the rest.
  KEEL_HD void activate(Thread& t, int l) const {
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    each_quad_rolled(t, cols, [&](int p, int j, int row, int col) {
      float* at = hidden_at(l) + row * kStride + col;
      const Quad z = quad(at);
      Quad a;
      layer(l).activation.visit([&](auto function) {
        if (function.kSaves == Saves::input && !layer(l).norm) *kept(t, l, p, j) = z;
        KEEL_UNROLL
        for (int e = 0; e < 4; ++e) a.v[e] = col + e < cols ? function.value(z.v[e]) : 0;
      });
      put_shared(at, a);
    });
  }

  KEEL_HD void store_forward(const Thread& t, int l) const {
    const bool relu = layer(l).relu() && !layer(l).norm;
    const float scale = parameter(l, FusedParameter::kWeight).scale;
    float* to = hidden_at(l) + Products::row_of<kTileRows>(t.id, 0) * kStride;
    KEEL_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int o = Products::forward_col(t.id, c);
      if (o >= 4 * quads_of(layer(l).outputs)) continue;
      const float bias = vector_at(l, FusedParameter::kBias)[o];
      KEEL_UNROLL
      for (int q = 0; q < kTileRows / 8; ++q) {
        const float z = multiply_add(scale, t.tile[q][c], bias);
        const float a = relu && z < 0 ? 0 : z;  // a NaN stays one
        to[4 * q * kStride + o] = o < layer(l).outputs ? a : 0;
      }
    }
  }

  // The arithmetic of layer_norm_program.h: the mean relative to the row's first element.
  KEEL_HD void sum_row(Thread& t, int l) const {
    forget_addresses(t.id);
    const int cols = layer(l).outputs;
    const float* z = hidden_at(l);
    float sum[kPasses] = {};
    each_quad(t, cols, [&](int p, int j, int row, int col) {
      const float first = kPlain || layer(l).centred ? z[row * kStride] : 0;
      t.value[p][j] = quad(z + row * kStride + col);
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e) {
        t.value[p][j].v[e] -= first;
        if (col + e < cols) sum[p] += t.value[p][j].v[e];
      }
    });
    store_stats(t, 0, sum);
  }

  // Without eps small deviations are lifted, so that their squares do not underflow.
  KEEL_HD static float lift_of(float eps) { return eps == 0 ? 0x1p20f : 1.0f; }

  KEEL_HD void sum_squares(Thread& t, int l) const {
    const int cols = layer(l).outputs;
    const float lift = lift_of(layer(l).eps);
    float mean[kPasses], sum[kPasses] = {};
    KEEL_UNROLL
    for (int p = 0; p < kPasses; ++p)
      mean[p] = kPlain || layer(l).centred
                    ? sum8(stats_at(0, row_of(t, p))) / static_cast<float>(cols)
                    : 0;
    each_quad(t, cols, [&](int p, int j, int, int col) {
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e) {
        t.value[p][j].v[e] -= mean[p];
        const float lifted = lift * t.value[p][j].v[e];
        if (col + e < cols) sum[p] += lifted * lifted;
      }
    });
    store_stats(t, 1, sum);
  }

  // 1 / sqrt(variance + eps): 0 for a constant row without eps, a NaN beyond the number range.
  KEEL_HD static float inverse_deviation(float variance, float eps) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    if (!(variance <= kLargest)) return std::numeric_limits<float>::quiet_NaN();
    const float sum = variance + eps;
    return sum == 0 ? 0 : lift_of(eps) / std::sqrt(sum);
  }

  KEEL_HD void normalise(Thread& t, int l) const {
    const int cols = layer(l).outputs;
    const bool relu = layer(l).relu();
    float scale[kPasses];
    KEEL_UNROLL
    for (int p = 0; p < kPasses; ++p) {
      const float variance = sum8(stats_at(1, row_of(t, p))) / static_cast<float>(cols);
      scale[p] = inverse_deviation(variance, layer(l).eps);
      if (t.id % 8 == 0) deviation_at(l)[row_of(t, p)] = scale[p];
    }
    each_quad(t, cols, [&](int p, int j, int row, int col) {
      Quad xhat, a;
      const Quad gain = quad(vector_at(l, FusedParameter::kGain) + col);
      const Quad shift = quad(vector_at(l, FusedParameter::kShift) + col);
      KEEL_UNROLL
      for (int e = 0; e < 4; ++e) {
        xhat.v[e] = t.value[p][j].v[e] * scale[p];
        const float z = multiply_add(xhat.v[e], gain.v[e], shift.v[e]);
        a.v[e] = col + e < cols ? (relu && z < 0 ? 0 : z) : 0;
      }
      *kept(t, l, p, j) = xhat;
      put_shared(hidden_at(l) + row * kStride + col, a);
    });
    if (!kPlain && layer(l).curved()) activate(t, l);  // values of its own, no barrier
  }
};

}  // namespace keel
