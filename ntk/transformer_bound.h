// A proved bound of a transformer with a Layer Norm behind its embedding: whatever the sequence, no
// prediction leaves an interval (docs/certificate.md, "A transformer").
#pragma once

#include "../nn/transformer.h"
#include "interval.h"

namespace keel {

/// The interval of every prediction of a member, for every sequence and at every place, as real
/// arithmetic has it: computed in double and widened by 1e-9 of all that was summed. Throws
/// keel::Error where the net has no Layer Norm, which nothing bounds, or a parameter that is no
/// finite number, and for a member it has not.
Interval bound_transformer(const Transformer& net, std::int64_t member = 0);

}  // namespace keel
