// TransformerStep: one step of training of a transformer, forward, backward, update.
#pragma once

#include "../core/repeated_work.h"
#include "../kernels/gradient_sink.h"
#include "optimiser.h"
#include "transformer.h"

namespace keel {

/// Trains all members of a transformer at once, on sequences that the caller brings for each step.
/// On a GPU the step is a recorded CUDA graph from its second run on. The transformer must outlive
/// it, and stay where it is.
class TransformerStep {
 public:
  /// Of `sequences` sequences a member. Throws keel::Error where those are none.
  TransformerStep(Transformer& net, std::int64_t sequences,
                  const OptimiserOptions& optimiser = AdamOptions());

  /// x, y [n, length], or [S, n, length] for S > 1 members, of any dtype and device: at place t of
  /// a sequence the net sees x up to there, and y is wanted. Changes the transformer's parameters.
  /// Does not wait for the device, unless x or y comes from another. Throws ShapeError.
  void run(const Tensor& x, const Tensor& y);

  /// Mean squared error before the last run's update: [], or [S], on the transformer's device; the
  /// next run writes the same tensor.
  const Tensor& loss() const { return loss_; }

 private:
  void differentiate_and_update();

  Transformer& net_;
  Tensor x_, y_, gradients_, loss_;
  Optimiser optimiser_;
  Tape tape_;
  GradientSink sink_;
  RepeatedWork step_;  // goes first: a GPU may be at work on all the others
};

}  // namespace keel
