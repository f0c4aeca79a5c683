#include "training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "../core/output_file.h"
#include "checkpoint.h"

namespace keel {
namespace {

using Clock = std::chrono::steady_clock;

// [1, n, d] of a net of one member is the same rows as [n, d].
Tensor member_axis_dropped(const Net& net, const Tensor& x) {
  return net.members() == 1 && x.rank() == 3 && x.size(0) == 1 ? x[0] : x;
}

void check_data(const Net& net, const Tensor& x, const Tensor& y) {
  const auto check_one = [&](const char* name, const Tensor& data, std::int64_t width) {
    check_same_kind("train", name, data, "the net", net.flat());
    const bool own = net.members() > 1 && data.rank() == 3 && data.size(0) == net.members();
    check<ShapeError>((data.rank() == 2 || own) && data.size(-1) == width, "train",
                      "got {} {}, wanted [n, {}] or [{}, n, {}]", name, data.shape(), width,
                      net.members(), width);
  };
  check_one("x", x, net.input_width());
  check_one("y", y, net.output_width());
  check<ShapeError>(x.size(-2) == y.size(-2), "train",
                    "got {} rows of x and {} of y, wanted as many", x.size(-2), y.size(-2));
  check<ShapeError>(x.size(-2) > 0, "train", "got no rows, wanted at least one");
}

}  // namespace

Training::Training(Net& net, Tensor x_given, Tensor y_given, const TrainOptions& options)
    : net(net),
      x(member_axis_dropped(net, x_given)),
      y(member_axis_dropped(net, y_given)),
      options(options),
      done(static_cast<std::size_t>(net.members()), 0),
      standings_(std::make_unique<Standing[]>(static_cast<std::size_t>(net.members()))) {
  check(options.epochs >= 1, "train", "got {} epochs, wanted at least 1", options.epochs);
  check(options.batch >= 0, "train", "got batch {}, wanted 0 (all rows) or more", options.batch);
  check(!options.resume || !options.checkpoint.empty(), "train",
        "got resume without a checkpoint, wanted the file to resume from");
  check_data(net, x, y);
  losses = Tensor::full({net.members(), options.epochs}, std::numeric_limits<double>::quiet_NaN(),
                        DType::f64);
  if (!options.checkpoint.empty()) {
    data_fingerprint_ = fingerprint(x) + "-" + fingerprint(y);
    moments = Optimiser(options.optimiser, net.flat()).moments();
  }
  if (options.resume) load_checkpoint();
  if (!options.checkpoint.empty()) {  // before hours of training
    OutputFile{options.checkpoint};
    check_no_other_file(options.checkpoint);
    if (!options.earlier_checkpoint.empty()) check_no_other_file(options.earlier_checkpoint);
  }
  own_checkpoint_ = options.resume;
  last_checkpoint_ = Clock::now();
}

EpochStart::EpochStart(const Training& training, const Tensor& flat,
                       const std::vector<Tensor>& moments, std::int64_t steps)
    : training_(training) {
  if (!training.options.stop || steps < 2) return;
  live_ = moments;
  live_.push_back(flat);
  for (const Tensor& tensor : live_) kept_.push_back(tensor.clone());
}

void EpochStart::remember() const {
  for (std::size_t i = 0; i < kept_.size(); ++i) copy(kept_[i], live_[i]);
}

void EpochStart::undo() const {
  for (std::size_t i = 0; i < kept_.size(); ++i) copy(live_[i], kept_[i]);
}

void Training::check_losses(std::int64_t s, std::int64_t begin, std::int64_t end) const {
  const double* loss = losses.data<double>() + s * options.epochs;
  for (std::int64_t e = begin; e < end; ++e) {
    if (std::isfinite(loss[e])) continue;
    const std::string before =
        e == 0 ? "none was" : fmt::format("its last was {:.6g} in epoch {}", loss[e - 1], e);
    fail("train",
         "got loss {} in epoch {} of member {} (seed {}), wanted a finite one: {}; try a smaller "
         "learning rate{}",
         loss[e], e + 1, s, net.options().seeds[s], before,
         e == 0 ? ", or standardise the data" : "");
  }
}

void Training::tell_progress(std::int64_t s, std::int64_t epochs) {
  if (!options.progress) return;
  standings_[s].loss.store(losses.data<double>()[s * options.epochs + epochs - 1]);
  standings_[s].epochs.store(epochs);
  const std::unique_lock lock(progress_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is telling
  const auto now = Clock::now();
  if (now - last_progress_ < std::chrono::milliseconds(100)) return;
  last_progress_ = now;
  Progress progress;
  progress.members = net.members();
  progress.epochs = net.members() * options.epochs;
  std::int64_t begun = 0;
  for (std::int64_t member = 0; member < net.members(); ++member) {
    const std::int64_t at = standings_[member].epochs.load();
    progress.epochs_done += at;
    progress.members_done += at == options.epochs;
    begun += at > 0;
    progress.mean_loss += at > 0 ? standings_[member].loss.load() : 0;
  }
  progress.mean_loss /= static_cast<double>(begun);
  options.progress(progress);
}

bool Training::checkpoint_due(Clock::time_point since) const {
  return !options.checkpoint.empty() &&
         Clock::now() - since >= std::chrono::duration<double>(options.checkpoint_seconds);
}

double Training::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Training::write_checkpoint() {
  // Of the epochs that are done alone: other members' threads are writing behind them.
  Tensor kept = Tensor::full({net.members(), *std::max_element(done.begin(), done.end())},
                             std::numeric_limits<double>::quiet_NaN(), DType::f64);
  for (std::int64_t s = 0; s < net.members(); ++s)
    copy(kept[s].slice(0, done[s]), losses[s].slice(0, done[s]));
  set_earlier_aside();
  keel::write_checkpoint(options.checkpoint,
                         {net_text(net), data_fingerprint_, training_text(step_options()),
                          net.flat(), moments, kept, done, seconds()});
  last_checkpoint_ = Clock::now();
}

// A training that fails before it has anything to keep has displaced nothing. By a second name of
// the file: however this ends, it is still at the first until the new one takes that.
void Training::set_earlier_aside() {
  if (std::exchange(own_checkpoint_, true) || options.earlier_checkpoint.empty()) return;
  const std::filesystem::path from = options.checkpoint, to = options.earlier_checkpoint;
  std::error_code problem;
  if (!std::filesystem::exists(from, problem)) return;
  // By their names, as a write that failed leaves one file under both.
  const auto whole = [](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  check(whole(from) != whole(to), "train",
        "got '{}' for the checkpoint and '{}' for an earlier one, which are one file",
        options.checkpoint, options.earlier_checkpoint);
  const bool link = std::filesystem::is_symlink(from, problem);  // what it names is written to
  if (!link) {
    std::filesystem::remove(to, problem);
    std::filesystem::create_hard_link(from, to, problem);
  }
  if (link || problem) std::filesystem::rename(from, to, problem);  // not all file systems can
  check(!problem, "train", "cannot rename '{}' to '{}': {}", options.checkpoint,
        options.earlier_checkpoint, problem.message());
}

void Training::load_checkpoint() {
  Checkpoint wanted{net_text(net), data_fingerprint_, training_text(step_options()),
                    net.flat(),    moments,           losses,
                    done};
  read_checkpoint(options.checkpoint, wanted);
  done = wanted.done;
  seconds_before_ = wanted.seconds;
  for (std::int64_t s = 0; s < net.members(); ++s) {
    standings_[s].epochs.store(done[s]);
    if (done[s] > 0)
      standings_[s].loss.store(losses.data<double>()[s * options.epochs + done[s] - 1]);
  }
}

}  // namespace keel
