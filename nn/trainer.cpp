#include "trainer.h"

#include <atomic>
#include <exception>
#include <limits>
#include <optional>

#include "../core/threads.h"
#include "flush_denormals.h"
#include "training.h"

namespace keel {
namespace {

// Whether ops have so much to do for one member that all threads can share it.
bool large(const Training& training) {
  constexpr std::int64_t kElements = std::int64_t{1} << 18;
  const std::int64_t n = training.x.size(-2), batch = training.options.batch;
  return (batch == 0 ? n : std::min(batch, n)) * training.net.widest() > kElements;
}

/// One member, from where it stands to its last epoch, or until stopped.
class MemberRun {
 public:
  MemberRun(Training& training, std::int64_t s)
      : training_(training),
        s_(s),
        net_(training.net.member(s)),
        step_(net_, own(training.x), own(training.y), training.step_options(),
              training.losses.slice(s, s + 1).reshape({training.options.epochs, 1})),
        start_(training, net_.flat(), step_.optimiser().moments(), step_.steps_per_epoch()),
        epoch_(training.done[s]) {
    if (epoch_ == 0) return;
    step_.optimiser().set_steps(epoch_ * step_.steps_per_epoch());
    for (std::size_t i = 0; i < training.moments.size(); ++i)
      copy_member(net_.layout(), step_.optimiser().moments()[i], 0, training.net.layout(),
                  training.moments[i], s);
  }

  void run(const std::atomic<bool>& abandon) {
    auto kept = std::chrono::steady_clock::now();
    while (epoch_ < training_.options.epochs && !training_.stop_requested() && !abandon) {
      if (!one_epoch()) break;
      ++epoch_;
      training_.check_losses(s_, epoch_ - 1, epoch_);
      training_.tell_progress(s_, epoch_);
      if (!training_.checkpoint_due(kept)) continue;
      keep();
      kept = std::chrono::steady_clock::now();
    }
    keep();
  }

 private:
  // False: stopped in the middle, and as if it had not begun.
  bool one_epoch() {
    start_.remember();
    step_.start_epoch(epoch_);
    for (std::int64_t i = 0; i < step_.steps_per_epoch(); ++i) {
      if (i > 0 && start_.stop_wanted()) {
        start_.undo();
        training_.losses.data<double>()[s_ * training_.options.epochs + epoch_] =
            std::numeric_limits<double>::quiet_NaN();
        return false;
      }
      step_.run(step_.rows_of(i));
    }
    return true;
  }

  Tensor own(const Tensor& data) const { return data.rank() == 3 ? data[s_] : data; }

  // Hands the state to the ensemble, whence it goes to the checkpoint.
  void keep() {
    const std::lock_guard lock(training_.mutex);
    training_.net.set_member(s_, net_);
    for (std::size_t i = 0; i < training_.moments.size(); ++i)
      copy_member(training_.net.layout(), training_.moments[i], s_, net_.layout(),
                  step_.optimiser().moments()[i], 0);
    training_.done[s_] = epoch_;
    if (training_.checkpoint_due(training_.last_checkpoint())) training_.write_checkpoint();
  }

  Training& training_;
  std::int64_t s_;
  Net net_;
  TrainStep step_;
  EpochStart start_;
  std::int64_t epoch_;
};

// A member's weights, moments and activations stay in one core's cache when it trains them alone.
void train_on_cpu(Training& training) {
  const std::int64_t members = training.net.members();
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> abandon{false};
  std::exception_ptr problem;
  const auto work = [&] {
    const FlushDenormals flush;
    try {
      for (std::int64_t s = next++; s < members && !abandon && !training.stop_requested();
           s = next++)
        if (training.done[s] < training.options.epochs) MemberRun(training, s).run(abandon);
    } catch (...) {  // an exception must not leave a parallel region
      const std::lock_guard lock(training.mutex);
      if (!problem) problem = std::current_exception();
      abandon = true;
    }
  };
  // A region of one thread would make each op's own region start threads anew.
  if (members == 1 || (members < thread_count() && large(training))) {
    const FlushDenormalsEverywhere flush;  // ops will share the threads
    work();
  } else {
#pragma omp parallel num_threads( \
    static_cast <int>(std::min <std::int64_t>(members, thread_count())))
    work();
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace

TrainReport train(Net& net, const Tensor& x, const Tensor& y, const TrainOptions& options) {
  Training training(net, x, y, options);
  net.flat().device().is_cpu() ? train_on_cpu(training) : train_on_gpu(training);
  if (!options.checkpoint.empty()) training.write_checkpoint();

  TrainReport report;
  report.losses = training.losses;
  report.epochs_done = training.done;
  for (std::int64_t done : training.done) report.interrupted |= done < options.epochs;
  report.seconds = training.seconds();
  report.seconds_before = training.seconds_before();
  return report;
}

}  // namespace keel
