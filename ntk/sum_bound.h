// How far a sum of tails goes: a bound on every output over all of their sets.
#pragma once

#include "net_bound.h"
#include "tail_sum.h"

namespace keel {

/// The interval of each of f's outputs. Of one tail of a set what bound_tail() finds. A sum's is
/// the sum of its terms' intervals; of a tail of a sum each activation is replaced by a line, so
/// that what is left is a linear map of the sum, whose terms take it in. Throws what bound_tail()
/// does.
std::vector<Interval> bound_sum(const TailSum& sum, const NetBoundOptions& options = {});

}  // namespace keel
