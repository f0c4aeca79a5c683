// How far a tail goes: a bound on every output over all of its set.
#pragma once

#include "net_bound.h"
#include "tail.h"

namespace keel {

/// The interval of each of f's outputs over the tail's set. Throws keel::Error for options out of
/// range, and for weights so large that double cannot hold a bound.
std::vector<Interval> bound_tail(const Tail& tail, const NetBoundOptions& options = {});

}  // namespace keel
