// A net's largest output, or that of an ensemble's mean, as the search of certify looks for it.
#pragma once

#include <cmath>
#include <vector>

#include "../nn/net.h"
#include "../ntk/net_bound.h"
#include "../ntk/search.h"

namespace keel {

/// |f_j - middle_j| in units of its own.
struct OutputSize {
  std::vector<double> middle, unit;  ///< an output each
  double operator()(double value, std::size_t j) const {
    return std::abs(value - middle[j]) / unit[j];
  }
};

/// |f_j|.
OutputSize size_of_outputs(const Net& net);

/// How far f_j is from the middle of its interval, in halves of that: 1 at an end.
OutputSize share_of_intervals(const NetBound& bound);

/// Of what an ensemble says, [S, n, outputs], the mean over its members, row by row; of one net
/// what it says.
std::vector<double> mean_of_members(const Tensor& said, std::int64_t members);

/// The largest over a row's outputs, the mean over the net's members of each, in float64, and no
/// more than `most`, as is proved, but for what twice the digits see. Both must outlive it.
RowFunction largest_output(const Net& net, const OutputSize& size, double most);

/// Of each row's largest output, as above. Both must outlive it.
RowGradient gradient_of_largest(const Net& net, const OutputSize& size);

}  // namespace keel
