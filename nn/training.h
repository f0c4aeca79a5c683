// Training: what the CPU's and the GPU's loops share: progress, stopping, losses, checkpoints.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "trainer.h"

namespace keel {

class Training {
 public:
  /// Checks everything, and loads the checkpoint where one is to be resumed.
  Training(Net& net, Tensor x, Tensor y, const TrainOptions& options);

  Net& net;
  const Tensor x, y;
  const TrainOptions& options;
  Tensor losses;                   ///< float64 [S, epochs], on the CPU
  std::vector<std::int64_t> done;  ///< epochs of each member that `net` and `moments` stand at
  std::vector<Tensor> moments;     ///< of the optimiser, laid out as the net's parameters
  std::mutex mutex;                ///< guards net, done and moments while members train

  StepOptions step_options() const {
    return {.batch = options.batch,
            .optimiser = options.optimiser,
            .shuffle_seed = options.shuffle_seed,
            .sharers = options.sharers};
  }
  bool stop_requested() const { return raised(options.stop); }

  /// Throws unless member s's losses of epochs begin <= e < end are finite.
  void check_losses(std::int64_t s, std::int64_t begin, std::int64_t end) const;

  /// Member s has finished `epochs` epochs: tells the caller's progress function, if it is time.
  void tell_progress(std::int64_t s, std::int64_t epochs);

  /// Whether `since` is so long ago that a state should be kept.
  bool checkpoint_due(std::chrono::steady_clock::time_point since) const;

  /// Of this call, so far, and of those that it resumed.
  double seconds() const;
  /// Of the latter.
  double seconds_before() const { return seconds_before_; }

  /// Writes net, moments, losses and done. Call with `mutex` held.
  void write_checkpoint();
  std::chrono::steady_clock::time_point last_checkpoint() const { return last_checkpoint_; }

 private:
  void load_checkpoint();
  void set_earlier_aside();

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_before_ = 0;
  std::string data_fingerprint_;
  std::chrono::steady_clock::time_point last_checkpoint_;
  bool own_checkpoint_;  // what is at options.checkpoint is this training's

  struct Standing {
    std::atomic<std::int64_t> epochs{0};
    std::atomic<double> loss{0};
  };
  std::unique_ptr<Standing[]> standings_;
  std::mutex progress_mutex_;
  std::chrono::steady_clock::time_point last_progress_;
};

/// What one epoch starts from. Checkpoints are of whole epochs, so that a resumed run ends with the
/// same bits; a wish to stop must not wait for the end of an epoch of many steps, which is undone.
class EpochStart {
 public:
  /// Of parameters and moments; keeps nothing where nobody can stop the training, or of one step.
  EpochStart(const Training& training, const Tensor& flat, const std::vector<Tensor>& moments,
             std::int64_t steps);
  void remember() const;
  bool stop_wanted() const { return !kept_.empty() && training_.stop_requested(); }
  void undo() const;

 private:
  const Training& training_;
  std::vector<Tensor> live_, kept_;
};

/// Trains all members at once; steps are recorded as a CUDA graph and replayed.
void train_on_gpu(Training& training);

}  // namespace keel
