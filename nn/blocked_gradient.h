// BlockedGradient: the gradient of a net's mean squared error over more rows than a core's cache
// holds the activations of.
#pragma once

#include <memory>
#include <vector>

#include "net.h"

namespace keel {

/// Forward and backward for one block of rows at a time, so that activations stay in the cache
/// (where no layer has more than 480 units); threads take runs of blocks, 64 at the most, each with
/// a gradient of its own. Blocks and the order in which their shares are added follow from the
/// shapes alone: the same bits for any number of threads.
class BlockedGradient {
 public:
  /// `net`: one member, on the CPU. `gradients`: shaped as its flat parameters.
  BlockedGradient(const Net& net, Tensor gradients);
  ~BlockedGradient();
  BlockedGradient(const BlockedGradient&) = delete;
  BlockedGradient& operator=(const BlockedGradient&) = delete;

  std::int64_t block_rows() const { return block_rows_; }  ///< rows a block

  /// Whether so many rows are better off in blocks: more than one, whose gradients are together no
  /// larger than what two layers put out for all rows.
  bool pays(std::int64_t rows) const;

  /// x [n, d], y [n, k]: writes the gradient of the mean squared error, and returns the error.
  double run(const Tensor& x, const Tensor& y);

 private:
  class Worker;
  Worker& worker();  // of the calling thread
  std::int64_t blocks_of(std::int64_t rows) const;
  void add_up(std::int64_t runs);

  const Net& net_;
  Tensor gradients_;
  std::int64_t block_rows_;
  Tensor shares_;  // [runs, parameters]: each run's gradient
  std::vector<double> losses_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by thread
};

}  // namespace keel
