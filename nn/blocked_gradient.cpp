#include "blocked_gradient.h"

#include <algorithm>

#include "../core/each_in_parallel.h"
#include "../core/threads.h"
#include "../kernels/gradient_sink.h"
#include "../kernels/mse.h"

namespace keel {
namespace {

// Of one layer: 120 KiB of float32, of which a step keeps about eight, and few enough for launches
// not to ask for threads of their own.
constexpr std::int64_t kBlockElements = 30 << 10;
constexpr std::int64_t kRuns = 64;  // of blocks: what threads share a step by

std::int64_t block_rows_for(std::int64_t widest) {
  return std::clamp<std::int64_t>(kBlockElements / widest / 16 * 16, 64, 512);
}

}  // namespace

/// What one thread needs for a block.
class BlockedGradient::Worker {
 public:
  explicit Worker(const Net& net)
      : net_(net), gradients_(Tensor::zeros(net.flat().shape(), net.flat().dtype())) {
    const std::vector<Var> leaves = net.leaves(tape_);
    for (std::size_t p = 0; p < leaves.size(); ++p)
      sink_.bind(leaves[p], net.layout().view(gradients_, p));
  }

  /// Adds the block's gradient times `share` to `into`, or begins it; returns share * error.
  double run(const Tensor& x, const Tensor& y, double share, bool begin, const Tensor& into) {
    tape_.clear();
    const std::vector<Var> leaves = net_.leaves(tape_);
    const Var loss = mse(net_.forward(x, leaves), y);
    tape_.backward(loss, Tensor::full(loss.shape(), share, loss.value().dtype()), sink_);
    begin ? copy(into, gradients_) : accumulate(into, gradients_);
    return share * loss.value().item();
  }

 private:
  const Net& net_;
  Tensor gradients_;
  Tape tape_;
  GradientSink sink_;
};

BlockedGradient::BlockedGradient(const Net& net, Tensor gradients)
    : net_(net), gradients_(std::move(gradients)), block_rows_(block_rows_for(net.widest())) {}

BlockedGradient::~BlockedGradient() = default;

BlockedGradient::Worker& BlockedGradient::worker() {
  std::unique_ptr<Worker>& own = workers_[static_cast<std::size_t>(thread_index())];
  if (!own) own = std::make_unique<Worker>(net_);
  return *own;
}

std::int64_t BlockedGradient::blocks_of(std::int64_t rows) const {
  return (rows + block_rows_ - 1) / block_rows_;
}

bool BlockedGradient::pays(std::int64_t rows) const {
  const std::int64_t runs = std::min(blocks_of(rows), kRuns);
  const auto shares = static_cast<double>(runs) * static_cast<double>(gradients_.elements());
  const auto layer = static_cast<double>(rows) * static_cast<double>(net_.widest());
  return runs > 1 && shares <= 2 * layer;
}

double BlockedGradient::run(const Tensor& x, const Tensor& y) {
  const std::int64_t n = x.size(0), blocks = blocks_of(n);
  const std::int64_t runs = std::min(blocks, kRuns);
  if (!shares_.defined() || shares_.size(0) < runs)
    shares_ = Tensor::empty({runs, gradients_.elements()}, gradients_.dtype());
  losses_.assign(static_cast<std::size_t>(runs), 0);
  if (workers_.size() < static_cast<std::size_t>(thread_count())) workers_.resize(thread_count());
  each_in_parallel(static_cast<std::size_t>(runs), [&](std::size_t i) {
    const auto run = static_cast<std::int64_t>(i);
    const std::int64_t first = blocks * run / runs, last = blocks * (run + 1) / runs;
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t begin = block * block_rows_, end = std::min(begin + block_rows_, n);
      losses_[i] += worker().run(x.slice(begin, end), y.slice(begin, end),
                                 static_cast<double>(end - begin) / static_cast<double>(n),
                                 block == first, shares_[run]);
    }
  });
  add_up(runs);
  double loss = 0;
  for (double part : losses_) loss += part;
  return loss;
}

void BlockedGradient::add_up(std::int64_t runs) {
  const std::int64_t count = gradients_.elements();
  constexpr std::int64_t kPiece = 1024;
  dispatch(gradients_.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* shares = shares_.data<T>();
    T* into = gradients_.data<T>();
#pragma omp parallel for schedule(static)
    for (std::int64_t begin = 0; begin < count; begin += kPiece) {
      const std::int64_t size = std::min(kPiece, count - begin);
      std::copy_n(shares + begin, size, into + begin);
      for (std::int64_t run = 1; run < runs; ++run) {
        const T* share = shares + run * count + begin;
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) into[begin + i] += share[i];
      }
    }
  });
}

}  // namespace keel
