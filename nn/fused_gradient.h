// FusedGradient: the gradient of a small net's mean squared error, or a step of Adam by it, in two
// kernels on a GPU (kernels/fused_mlp.h), rather than op by op through memory.
#pragma once

#include <optional>

#include "../kernels/fused_mlp.h"
#include "net.h"

namespace keel {

/// The net as fused_mlp takes it: dense [layernorm | rmsnorm] [an activation but prelu] ... dense
/// in float32, of bounded widths; empty where it is another.
std::optional<FusedMlp> fused_description(const Net& net);

/// Allocates once: what run launches may be recorded and replayed. The same gradient as that of
/// forward, mse and backward within float32 rounding; the same bits every time.
class FusedGradient {
 public:
  /// Whether the net has such a description, and lives on a GPU.
  static bool applies(const Net& net);

  /// `gradients`: shaped as the net's flat parameters. For steps of up to `most_rows` rows, on a
  /// GPU that so many trainings share.
  FusedGradient(const Net& net, Tensor gradients, std::int64_t most_rows, int sharers = 1);

  /// x [n, d] or [S, n, d], y [n, k] or [S, n, k]: writes the gradient of the sum over members of
  /// their mean squared errors, and returns the errors [S], which the next run overwrites. Throws
  /// ShapeError or DeviceError.
  Tensor run(const Tensor& x, const Tensor& y);

  /// Updates the net in place of writing its gradient, and adds the errors to a record. Throws as
  /// run, and keel::Error as adam does.
  void step(const Tensor& x, const Tensor& y, const AdamOptions& options, const AdamState& state,
            const LossRecord& record);

 private:
  FusedTask task_of(const Tensor& x, const Tensor& y) const;

  FusedMlp description_;
  int sharers_;
  std::int64_t members_, most_rows_;
  Tensor parameters_, gradients_, losses_, workspace_;
};

}  // namespace keel
