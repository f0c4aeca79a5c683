// reproduce distance: how far a net can go within a distance of its data, proved and found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../core/device.h"
#include "../ntk/interval.h"

namespace keel {

/// Friedman's first function (1991, equation 61) without its noise, of x in [0, 1]^5:
///   10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4.
double friedman(const double* x);

struct DistanceNet {
  const char *name, *title;
  std::string spec;
};

/// Two hidden layers of `width`: without a norm, with a Layer Norm behind the first or the second,
/// and with tanh.
std::vector<DistanceNet> distance_nets(std::int64_t width);

struct DistanceOptions {
  std::int64_t seeds = 1, epochs = 3000, rows = 300, width = 64;
  std::vector<double> within;  ///< distances |x|, in ascending order
  std::int64_t steps = 1000;   ///< of the bounds' descent, its others in proportion
  std::int64_t boxes = 60000;  ///< that x is cut in, for each bound
  std::uint64_t first_seed = 0;
  Device device{};
  std::function<void()> progress;  ///< after each net and distance
};

/// What is proved, and what a search found, of all |x| <= within.
struct WithinDistance {
  double within = 0;
  Interval proved, found;
};

/// One net of one seed. x and f are in deviations from the rows' means.
struct DistanceCurve {
  std::size_t net = 0;  ///< of distance_nets()
  std::uint64_t seed = 0;
  double train_r2 = 0;
  std::vector<WithinDistance> at{};
};

struct DistanceRun {
  double farthest_row = 0;  ///< |x|
  std::vector<DistanceCurve> curves;
};

/// Trains each net by full-batch Adam of step size 1e-3, bounds it and searches it. Throws
/// keel::Error where a search leaves what was proved.
DistanceRun run_distance(const DistanceOptions& options);

}  // namespace keel
