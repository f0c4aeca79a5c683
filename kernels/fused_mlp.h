// fused_mlp: mean squared error of a small net and its gradient, in one pass over the rows on a
// GPU: a tile of rows stays on chip from its inputs to the sums of its gradient.
#pragma once

#include <array>
#include <cstdint>

#include "../core/device.h"
#include "activations.h"
#include "adam_rule.h"
#include "loss_record.h"

namespace keel {

/// z = weight_scale W a + bias_scale b, then layer_norm where `norm`, or rms_norm where not
/// `centred`, then the activation.
struct FusedLayer {
  int inputs = 0, outputs = 0;
  bool norm = false, centred = true, affine = false;
  float eps = 0;
  AnyActivation activation;

  KEEL_HD bool relu() const { return activation.kind == AnyActivation::Kind::relu; }
  /// Whether there is an activation other than relu.
  KEEL_HD bool curved() const { return !relu() && activation.kind != AnyActivation::Kind::none; }
};

/// One parameter of a layer: [rows, cols] in each member, vectors being one row; none: 0 rows.
/// Member s's begins at flat + s rows cols; `scale` multiplies it, as in ParameterSpec.
struct FusedParameter {
  enum Kind { kWeight, kBias, kGain, kShift, kKinds };
  std::int64_t flat = 0;
  int rows = 0, cols = 0;
  float scale = 1;
  // Filled by FusedTask::plan: where a block's sums lie in its slice; elements up to its last.
  int part = 0, stride = 0, end = 0;
};

/// dense [norm] [activation] ... dense: `hidden` layers and the one of the outputs.
struct FusedMlp {
  static constexpr int kMostHidden = 4, kMostWidth = 128, kMostOutputs = 16;
  int hidden = 0;
  std::array<FusedLayer, kMostHidden + 1> layers{};
  std::array<FusedParameter, FusedParameter::kKinds*(kMostHidden + 1)> parameters{};

  /// Widths are within bounds and a tile of rows has room in a block's shared memory: 99 KiB, what
  /// every generation from sm_86 on has.
  bool fits(int tile_rows = 32) const;

  /// No norm but layer_norm, and no activation but relu: kernels that know no others will do.
  bool plain() const;
};

/// Where things lie in a block's shared memory, in floats.
struct FusedShared {
  static constexpr int kMost = 99 * 1024 / 4;
  int x = 0, x_stride = 0, hidden = 0, stage = 0, stats = 0, deviation = 0, error = 0, vectors = 0,
      out = 0, total = 0;
};

/// What a step does with the gradient, where there is a step: Adam's update in place of storing it,
/// and a record of the losses. `first` and `second` are laid out as the parameters.
struct FusedUpdate {
  AdamClock clock;
  AdamRule<float> rule;
  float *parameters = nullptr, *first = nullptr, *second = nullptr;  // null: none
  LossRecord record;
};

/// A net, and rows to differentiate it on. The work of member s is shared by member_slots blocks,
/// `slots`, each of which takes slot_tiles tiles in turn and adds up their gradients in a slice of
/// its own: sums and their order follow from the shapes, and from how many share the GPU.
struct FusedTask {
  static constexpr int kMostSlots = 132;  // but at least one a member

  FusedMlp net;
  FusedShared at;
  std::int64_t members = 1, rows = 0, tiles = 0, slot_tiles = 0, member_slots = 0;
  int tile_rows = 0;  // 64 or 32
  bool keep = false;  // one wide matrix of weights at most
  int slice = 0, loss_part = 0;
  int elements = 0;                       // of a member: all parameters', and the loss
  float error_scale = 0, loss_scale = 0;  // 2 / (rows outputs), 1 / (rows outputs)

  const float *parameters = nullptr, *x = nullptr, *y = nullptr;
  std::int64_t x_stride = 0, y_stride = 0;   // from member to member; 0: shared
  float *slices = nullptr, *kept = nullptr;  // of the workspace
  float *gradients = nullptr, *losses = nullptr;
  FusedUpdate update;

  KEEL_HD bool updates() const { return update.parameters != nullptr; }
  std::int64_t slots() const { return members * member_slots; }

  /// All but the pointers and strides, for rows >= 1. tile_rows 0: what suits the shapes, on a GPU
  /// that so many such tasks share.
  static FusedTask plan(const FusedMlp& net, std::int64_t members, std::int64_t rows,
                        int tile_rows = 0, int sharers = 1);

  /// Floats that slices and kept take together for up to `rows` rows.
  static std::int64_t workspace(const FusedMlp& net, std::int64_t members, std::int64_t rows);

  /// Points slices and kept into a workspace, which begins at 16 bytes.
  void use(float* workspace);
};

/// x [n, i] or [S, n, i], y [n, k] or [S, n, k]: writes losses [S], each member's mean over rows
/// and outputs of (prediction - y)^2, and the gradient of their sum into `gradients`, laid out as
/// the parameters; gaps stay as they are. With an `update` the same two launches take the step
/// instead: gradients are not written. True float32, no atomics: the same bits every time.
/// A row's variance beyond float32's range, without eps 2^-40 of that, leaves NaN. Throws
/// DeviceError without CUDA.
void fused_mlp(const FusedTask& task, Device device);

}  // namespace keel
