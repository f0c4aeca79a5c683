// A proved bound of a transformer with a norm that nothing passes by, behind its embedding or ahead
// of its last layer: whatever the sequence, no prediction leaves an interval (docs/transformer.md).
#pragma once

#include "../nn/transformer.h"
#include "interval.h"

namespace keel {

/// The interval of every prediction of a member, for every sequence and at every place, as real
/// arithmetic has it: computed in double, and widened by more than rounding can take. Predictions
/// in double or float32 are rounded themselves, and may pass it by that. Throws keel::Error where
/// the net has no such norm, so that nothing bounds it, or a parameter that is no finite number or
/// too large for a bound in double, and for a member it has not.
Interval bound_transformer(const Transformer& net, std::int64_t member = 0);

}  // namespace keel
