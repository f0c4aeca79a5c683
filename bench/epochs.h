// An epoch as training spends it: of a run of train(), with all that comes with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../nn/trainer.h"
#include "bench.h"

namespace keel::bench {

/// Seconds of one of `epochs` epochs of full-batch Adam on x [n, d] and y [n, k] of a new net of
/// SPEC, `repeats` times after a first one. On a GPU a run records its step and replays it.
inline Timing measure_epochs(const std::string& spec, const Tensor& x, const Tensor& y,
                             std::int64_t epochs, std::int64_t repeats) {
  std::vector<double> times;
  for (std::int64_t repeat = 0; repeat <= repeats; ++repeat) {
    Net net(spec, x.shape().cols(), {.device = x.device()});
    const TrainReport report = train(net, x, y, {.epochs = epochs});
    if (repeat > 0) times.push_back(report.seconds / static_cast<double>(epochs));
  }
  return summary(times);
}

}  // namespace keel::bench
