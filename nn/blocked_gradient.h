// BlockedGradient: the gradient of a net's mean squared error over more rows than a core's cache
// holds the activations of.
#pragma once

#include <memory>
#include <vector>

#include "net.h"

namespace keel {

/// Forward and backward for one block of rows at a time, so that activations never leave the cache;
/// threads take runs of blocks. Blocks and the order in which their shares are added follow from
/// the shapes alone: the same bits for any number of threads.
class BlockedGradient {
 public:
  /// `net`: one member, on the CPU. `gradients`: shaped as its flat parameters.
  BlockedGradient(const Net& net, Tensor gradients);
  ~BlockedGradient();
  BlockedGradient(const BlockedGradient&) = delete;
  BlockedGradient& operator=(const BlockedGradient&) = delete;

  /// Rows a block; so many and fewer are better off as one.
  std::int64_t block_rows() const { return block_rows_; }

  /// x [n, d], y [n, k]: writes the gradient of the mean squared error, and returns the error.
  double run(const Tensor& x, const Tensor& y);

 private:
  class Worker;
  Worker& worker();  // of the calling thread
  void add_up(std::int64_t runs);

  const Net& net_;
  Tensor gradients_;
  std::int64_t block_rows_;
  Tensor shares_;  // [runs, parameters]: each run's gradient
  std::vector<double> losses_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by thread
};

}  // namespace keel
