#include <algorithm>

#include "../core/repeated_work.h"
#include "training.h"

namespace keel {

namespace {

class EnsembleRun {
 public:
  explicit EnsembleRun(Training& training)
      : training_(training),
        device_(training.net.flat().device()),
        epoch_(training.done[0]),
        checked_(epoch_),
        losses_(
            Tensor::zeros({training.options.epochs, training.net.members()}, DType::f64, device_)),
        step_(training.net, training.x, training.y, training.step_options(), losses_),
        start_(training, training.net.flat(), step_.optimiser().moments(),
               step_.steps_per_epoch()) {
    if (epoch_ > 0) {
      step_.optimiser().set_steps(epoch_ * step_.steps_per_epoch());
      for (std::size_t i = 0; i < training.moments.size(); ++i)
        copy(step_.optimiser().moments()[i], training.moments[i]);
    }
    training.moments = step_.optimiser().moments();  // from now on the same tensors
  }

  void run() {
    constexpr std::int64_t kEpochs = 100, kSteps = 2000;  // between two looks at the losses
    for (std::int64_t steps = 0;
         epoch_ < training_.options.epochs && !training_.stop_requested();) {
      const std::int64_t before = epoch_;
      if (!several_epochs(checked_ + kEpochs) && !one_epoch()) break;
      steps += (epoch_ - before) * step_.steps_per_epoch();
      if (epoch_ - checked_ < kEpochs && steps < kSteps) continue;
      look();
      steps = 0;
    }
    look();
  }

 private:
  // Whole steps that are launched at once: a graph's launch leaves the device idle for about as
  // long as the smallest kernels take.
  static constexpr std::int64_t kAtOnce = 10;

  // Epochs of one step each. False where there are not so many up to epoch `end`.
  bool several_epochs(std::int64_t end) {
    if (!warm_ || step_.steps_per_epoch() > 1 ||
        epoch_ + kAtOnce > std::min(end, training_.options.epochs))
      return false;
    for (std::int64_t i = 0; i < kAtOnce; ++i) step_.start_epoch(epoch_ + i);  // nothing to draw
    replay(several_, step_.rows_of(0), kAtOnce);
    epoch_ += kAtOnce;
    return true;
  }

  // `count` steps of so many rows.
  void replay(std::unique_ptr<RecordedWork>& recorded, std::int64_t rows, std::int64_t count) {
    if (!recorded)
      recorded = std::make_unique<RecordedWork>(device_, [&] {
        for (std::int64_t i = 0; i < count; ++i) step_.run(rows);
      });
    recorded->replay();
  }

  // False: stopped in the middle, and as if it had not begun.
  bool one_epoch() {
    start_.remember();
    step_.start_epoch(epoch_);
    const std::int64_t steps = step_.steps_per_epoch(), whole = step_.rows_of(0);
    for (std::int64_t i = 0; i < steps;) {
      if (i > 0 && start_.stop_wanted()) {
        start_.undo();
        return false;
      }
      const std::int64_t rows = step_.rows_of(i);
      std::int64_t count = 1;
      if (!warm_) {
        step_.run(rows);  // fills the pool: recording must find all its memory there
      } else if (i + kAtOnce <= steps && step_.rows_of(i + kAtOnce - 1) == whole) {
        count = kAtOnce;
        replay(several_, rows, count);
      } else {
        replay(rows == whole ? whole_ : rest_, rows, count);
      }
      i += count;
    }
    warm_ = true;
    ++epoch_;
    return true;
  }

  // Waits for the device; then the caller hears of it, a NaN is found, and a checkpoint is kept.
  void look() {
    const std::int64_t members = training_.net.members(), epochs = training_.options.epochs;
    const Tensor fresh = losses_.slice(checked_, epoch_).to(Device::cpu());
    double* losses = training_.losses.data<double>();
    for (std::int64_t e = checked_; e < epoch_; ++e)
      for (std::int64_t s = 0; s < members; ++s)
        losses[s * epochs + e] = fresh.data<double>()[(e - checked_) * members + s];
    for (std::int64_t s = 0; s < members; ++s) training_.check_losses(s, checked_, epoch_);
    checked_ = epoch_;
    training_.done.assign(training_.done.size(), epoch_);
    const bool keep = training_.checkpoint_due(training_.last_checkpoint());
    if (!keep && !training_.options.progress) return;
    // A stream of their own: memory they take must not be memory that a replay writes to.
    const StreamScope outside(device_);
    if (epoch_ > 0)
      for (std::int64_t s = 0; s < members; ++s) training_.tell_progress(s, epoch_);
    if (keep) training_.write_checkpoint();
  }

  Training& training_;
  Device device_;
  std::int64_t epoch_, checked_;
  Tensor losses_;  // float64 [epochs, S]
  TrainStep step_;
  EpochStart start_;
  bool warm_ = false;
  std::unique_ptr<RecordedWork> whole_, rest_, several_;
};

}  // namespace

void train_on_gpu(Training& training) {
  const StreamScope own_stream(training.net.flat().device());
  EnsembleRun(training).run();
}

}  // namespace keel
