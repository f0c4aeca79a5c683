// train: fits a net, or every member of an ensemble, to data by mean squared error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../core/work_progress.h"
#include "train_step.h"

namespace keel {

/// How far a training is, for a progress bar.
struct Progress {
  std::int64_t members = 0, members_done = 0;
  std::int64_t epochs = 0, epochs_done = 0;  ///< summed over members
  double mean_loss = 0;                      ///< of the members that have begun, their latest
};

struct TrainOptions {
  std::int64_t epochs = 1000;
  std::int64_t batch =
      0;  ///< rows a step; 0: all at once. The last batch of an epoch may be smaller
  OptimiserOptions optimiser = AdamOptions{};
  std::uint64_t shuffle_seed = 0;  ///< mini-batches are drawn from it and the member's seed
  /// Trainings that share a GPU at the same time: each leaves room for the others, and may for that
  /// add up in another order.
  int sharers = 1;

  /// Called at most about ten times a second, by one thread at a time, not always the same.
  std::function<void(const Progress&)> progress{};

  /// Set to true by anybody, a signal handler say: train returns before the next epoch; where one
  /// is several steps, soon within it, and that epoch is undone.
  StopFlag stop = nullptr;

  std::string checkpoint{};        ///< a file to resume from; empty: none is written
  double checkpoint_seconds = 60;  ///< at most this often; and when training ends or is stopped
  bool resume = false;             ///< go on from `checkpoint`, to bitwise the same end
  /// Where a file at `checkpoint` goes that is not resumed, once there is another to take its
  /// place; empty: it is replaced.
  std::string earlier_checkpoint{};
};

struct TrainReport {
  /// float64 [S, epochs], on the CPU: the mean squared error over each epoch's rows, every one seen
  /// before the update it led to. NaN where an epoch was not reached.
  Tensor losses;
  std::vector<std::int64_t> epochs_done;  ///< by member
  bool interrupted = false;               ///< by `stop`: some member has epochs left
  double seconds = 0;                     ///< of this call and of those that it resumed
  double seconds_before = 0;              ///< of the latter
};

/// x [n, d] for all members or [S, n, d], y [n, k] or [S, n, k], on the net's device.
///
/// On the CPU whole members are trained by one thread each, unless there are fewer of them than
/// threads and each is large: then its ops share the threads. Member s ends bit for bit as the same
/// seed trained alone, for any number of threads and members. On a GPU all members train at once.
///
/// Throws keel::Error where a loss becomes NaN or infinite (member, seed, epoch, last finite loss),
/// and, before it trains, where the checkpoint belongs to another net, other data or other options,
/// or cannot be written.
TrainReport train(Net& net, const Tensor& x, const Tensor& y, const TrainOptions& options);

}  // namespace keel
