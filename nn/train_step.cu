#include "train_step.h"

#include "../core/each_in_parallel.h"
#include "../core/random.h"
#include "../kernels/gather_rows.h"
#include "../kernels/launch.cuh"
#include "../kernels/mse.h"
#include "streams.h"

namespace keel {
namespace {

template <class T>
struct RecordLoss {
  using Scalar = T;
  static constexpr int kWidest = 1;
  LossRecord record;
  const T* loss;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t member) const {
    g.once([&] { record.add(member, static_cast<double>(loss[member])); });
  }
};

Tensor batch_like(const Tensor& source, std::int64_t members, std::int64_t rows) {
  const Shape shape =
      members > 1 ? Shape{members, rows, source.size(-1)} : Shape{rows, source.size(-1)};
  return Tensor::empty(shape, source.dtype(), source.device());
}

std::int64_t rows_of_step(std::int64_t rows, std::int64_t batch) {
  return batch == 0 ? rows : std::min(batch, rows);
}

}  // namespace

void check_steps(const Net& net, std::int64_t rows, std::int64_t batch) {
  const std::int64_t step = rows_of_step(rows, batch);
  check(
      !net.mixes_rows() || (step > 1 && rows % step != 1), "train",
      "got steps of {} of {} rows, so that one has a single row: wanted two or more in every one, "
      "as '{}' has a batchnorm",
      step, rows, spec_text(net.spec()));
}

TrainStep::TrainStep(Net& net, Tensor x, Tensor y, const StepOptions& options, Tensor losses)
    : net_(net),
      x_(std::move(x)),
      y_(std::move(y)),
      rows_(x_.size(-2)),
      batch_(rows_of_step(rows_, options.batch)),
      shuffle_seed_(options.shuffle_seed),
      losses_(std::move(losses)),
      gradients_(Tensor::zeros(net.flat().shape(), net.flat().dtype(), net.flat().device())),
      optimiser_(options.optimiser, net.flat()),
      epoch_(Tensor::zeros({net.members()}, DType::f64, net.flat().device())),
      row_(epoch_.clone()) {
  check<ShapeError>(rows_ > 0 && y_.size(-2) == rows_, "train",
                    "got x {} and y {}, wanted as many rows, and some", x_.shape(), y_.shape());
  check(options.batch >= 0, "train", "got batch {}, wanted at least 0", options.batch);
  check(options.sharers >= 1, "train", "got {} trainings that share the GPU, wanted at least 1",
        options.sharers);
  check<ShapeError>(
      losses_.rank() == 2 && losses_.size(1) == net.members() && losses_.dtype() == DType::f64,
      "train", "got losses {} {}, wanted float64 [epochs, {}]", name_of(losses_.dtype()),
      losses_.shape(), net.members());
  check_same_kind("train", "x", x_, "the net", net.flat());
  check_same_kind("train", "y", y_, "the net", net.flat());
  check<DeviceError>(losses_.device() == net.flat().device(), "train",
                     "got losses on {}, wanted them on {}", losses_.device(), net.flat().device());
  check_steps(net, rows_, options.batch);
  if (shuffles()) order_ = Tensor::empty({net.members(), rows_}, DType::f64, net.flat().device());
  const std::vector<Var> leaves = net.leaves(tape_);
  for (std::size_t p = 0; p < leaves.size(); ++p)
    sink_.bind(leaves[p], net.layout().view(gradients_, p));
  if (net.members() == 1 && net.flat().device().is_cpu() && !net.mixes_rows())
    blocked_.emplace(net, gradients_);
  if (options.fused && FusedGradient::applies(net))
    fused_.emplace(net, gradients_, batch_, options.sharers);
}

void TrainStep::start_epoch(std::int64_t epoch) {
  check<ShapeError>(epoch >= 0 && epoch < losses_.size(0), "train",
                    "got epoch {}, wanted one from 0 to {}", epoch, losses_.size(0) - 1);
  if (epoch != next_epoch_) {  // else the last step of the last epoch left them so
    fill(epoch_, static_cast<double>(epoch));
    fill(row_, 0);
  }
  next_epoch_ = epoch + 1;
  if (!shuffles()) return;
  Tensor order = Tensor::empty(order_.shape(), DType::f64);
  each_in_parallel(static_cast<std::size_t>(net_.members()), [&](std::size_t s) {  // sorts
    // The multiplier is odd, hence one to one: different shuffle seeds, different orders.
    const std::uint64_t seed = net_.options().seeds[s] + shuffle_seed_ * 0x9e3779b97f4a7c15u;
    const auto drawn =
        permutation(rows_, {seed, streams::shuffle(static_cast<std::uint64_t>(epoch))});
    std::copy(drawn.begin(), drawn.end(),
              order.data<double>() + static_cast<std::int64_t>(s) * rows_);
  });
  copy(order_, order);
}

Tensor TrainStep::differentiate(const Tensor& x, const Tensor& y) {
  if (fused_) return fused_->run(x, y);
  if (blocked_ && blocked_->pays(x.size(0)))
    return Tensor::full({}, blocked_->run(x, y), x.dtype());
  tape_.clear();
  const std::vector<Var> leaves = net_.leaves(tape_);
  const Var loss = mse(net_.forward(x, leaves), y);
  tape_.backward(loss, sink_);
  return loss.value();
}

LossRecord TrainStep::record_of(std::int64_t rows) const {
  return {net_.members(),
          rows,
          rows_,
          static_cast<double>(rows) / static_cast<double>(rows_),
          epoch_.data<double>(),
          row_.data<double>(),
          losses_.data<double>()};
}

void TrainStep::run(std::int64_t rows) {
  check<ShapeError>(rows >= 1 && rows <= batch_, "train", "got a step of {} rows, wanted 1 to {}",
                    rows, batch_);
  Tensor x = x_, y = y_;
  if (shuffles()) {
    x = batch_like(x_, net_.members(), rows);
    y = batch_like(y_, net_.members(), rows);
    gather_rows(x_, order_, row_, x);
    gather_rows(y_, order_, row_, y);
  }
  const auto* adam = optimiser_.adam_state();
  if (fused_ && adam) return fused_->step(x, y, adam->first, adam->second, record_of(rows));
  const Tensor loss = differentiate(x, y);
  optimiser_.step(gradients_);
  dispatch(loss.dtype(), [&](auto t) {
    using T = decltype(t);
    launch_rows(losses_.device(), net_.members(), 1,
                RecordLoss<T>{record_of(rows), loss.data<T>()});
  });
}

}  // namespace keel
