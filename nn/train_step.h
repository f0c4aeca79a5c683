// TrainStep: one step of training, forward, backward, update, as work of the device alone.
#pragma once

#include <algorithm>
#include <optional>

#include "../kernels/gradient_sink.h"
#include "blocked_gradient.h"
#include "fused_gradient.h"
#include "net.h"
#include "optimiser.h"

namespace keel {

struct StepOptions {
  std::int64_t batch = 0;  ///< rows a step; 0: all
  OptimiserOptions optimiser{};
  std::uint64_t shuffle_seed = 0;
  bool fused = true;  ///< on a GPU, small nets in two kernels (fused_gradient.h); false: op by op
  int sharers = 1;    ///< trainings that share the GPU, at the same time
};

/// Throws keel::Error where a net with a batchnorm would have a step of one row, of which it leaves
/// nothing to learn from. `batch` as in StepOptions.
void check_steps(const Net& net, std::int64_t rows, std::int64_t batch);

/// Trains all members of a net at once; which rows come next, and which epoch a loss belongs to, is
/// counted on the device, so that a recorded step can be replayed.
class TrainStep {
 public:
  /// x [n, d] or [S, n, d], y [n, k] or [S, n, k]; losses float64 [epochs, S], on the net's device.
  /// Throws keel::Error as check_steps(), and where there is no row or a batch below 0.
  TrainStep(Net& net, Tensor x, Tensor y, const StepOptions& options, Tensor losses);

  /// Before an epoch, of which every step is then run: goes to its first row, and draws the order
  /// of its rows on the host: of member s by (its seed, shuffle_seed, epoch) alone, so a resumed
  /// run sees what an unbroken one would. Throws ShapeError where `losses` has no such epoch.
  void start_epoch(std::int64_t epoch);

  std::int64_t steps_per_epoch() const { return (rows_ + batch_ - 1) / batch_; }

  /// Rows of step i of an epoch: the batch, but fewer in the last step where it does not divide n.
  std::int64_t rows_of(std::int64_t i) const { return std::min(batch_, rows_ - i * batch_); }

  /// The next step, of `rows` rows, 1 to the batch. Nothing here waits for the device, or depends
  /// on the epoch. losses[epoch, s] gathers the mean over the epoch's rows, each before the update
  /// it led to. On the CPU, more rows of one member than its cache holds are taken in blocks.
  void run(std::int64_t rows);

  Optimiser& optimiser() { return optimiser_; }

 private:
  bool shuffles() const { return batch_ < rows_; }
  Tensor differentiate(const Tensor& x, const Tensor& y);  // fills gradients_, returns the losses
  LossRecord record_of(std::int64_t rows) const;

  Net& net_;
  Tensor x_, y_;
  std::int64_t rows_, batch_;
  std::uint64_t shuffle_seed_;
  Tensor losses_, gradients_;
  Optimiser optimiser_;
  Tensor epoch_, row_;            // float64 [S] each: where every member is
  std::int64_t next_epoch_ = -1;  // where they stand once the epoch that was begun has been run
  Tensor order_;                  // float64 [S, n], only where it shuffles
  Tape tape_;
  GradientSink sink_;
  std::optional<BlockedGradient> blocked_;  // one member on the CPU, rows apart
  std::optional<FusedGradient> fused_;      // a small net on a GPU
};

}  // namespace keel
