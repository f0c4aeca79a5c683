// A search for the largest value of a function of an input, as far out as one likes: what the
// certificate is tried against.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../core/tensor.h"
#include "../core/work_progress.h"
#include "interval.h"

namespace keel {

/// One value for each row of x [m, d] float64.
using RowFunction = std::function<std::vector<double>(const Tensor& x)>;

/// The gradients of such values: [m, d] float64 of x [m, d].
using RowGradient = std::function<Tensor(const Tensor& x)>;

/// From so many coordinates on a gradient that is given serves. Of fewer, two evaluations a
/// coordinate are cheap, and see past a kink.
inline constexpr std::int64_t kManyCoordinates = 64;

struct SearchOptions {
  double nearest = 1e-2,
         farthest =
             1e6;  ///< of |x|: rays start at the one, and nothing is reported beyond the other
  std::vector<Interval> ranges{};  ///< of each coordinate: nothing is looked at outside; or empty
  std::vector<std::vector<double>> points{};  ///< to be tried, and climbed from, beside the rays
  std::int64_t directions = 256;  ///< random ones, besides the axes, the starts and their opposites
  std::int64_t radii = 33;        ///< tried along each direction, evenly spaced in log |x|
  std::int64_t climbers = 32;     ///< the best points of the best rays, that climb the gradient:
                                  ///< without a gradient fewer, down to 4, from
                                  ///< kManyCoordinates on
  std::int64_t steps = 200;       ///< of each climber
  std::uint64_t seed = 0;
  StopFlag stop = nullptr;  ///< once it is raised, what has been found by then is all
};

struct Found {
  double value = 0;       ///< the largest found
  std::vector<double> x;  ///< where, [d]
  std::int64_t evaluations = 0;
  double distance() const;  ///< |x|
};

/// Largest value of `f` over |x| <= farthest, and in the ranges if there are any, that rays from
/// the origin and gradient ascent find: a lower bound of the supremum, never an upper one. What is
/// outside is brought back to the nearest point inside. Gradients are central differences, or, from
/// kManyCoordinates on, what `gradient` gives, where one is given; climbers take Adam's steps, of
/// 0.3 |x| at first and of 1e-4 |x| at the end; then the best point found takes as many, from 0.01
/// |x| on. `starts` [s, d] float64 gives directions worth trying (training inputs). Deterministic.
/// Throws keel::Error where f gives something that is not a number.
Found search_largest(const RowFunction& f, std::int64_t width, const Tensor& starts,
                     const SearchOptions& options = {}, const RowGradient& gradient = {});

}  // namespace keel
