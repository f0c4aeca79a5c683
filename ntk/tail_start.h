// Where a tail begins: at a norm, a tanh or a sigmoid, of whatever stands before it.
#pragma once

#include "../nn/net.h"
#include "tail.h"

namespace keel {

/// What the word at `layer` of a net of one member gives, a layernorm, rmsnorm, tanh or sigmoid:
/// its set, as far as the layers right before it tell if `narrow`, and of a norm gain and bias.
/// Nothing stands behind it yet. Throws keel::Error where gains are so small that no margin would
/// tell.
Tail tail_from(const Net& net, std::size_t layer, bool narrow);

/// x itself where |x| <= within: what an RMSNorm of that length would give. Throws keel::Error
/// unless `within` is a number above 0.
Tail tail_of_inputs(const Net& net, double within);

/// x itself where every feature is in its range: as a tanh's box, whose units the ranges scale.
Tail tail_of_ranges(const std::vector<Interval>& ranges);

/// x itself in the ellipsoid about the ranges that is round where they are as long as each other:
/// as tail_of_inputs().
Tail tail_around_ranges(const std::vector<Interval>& ranges);

/// As tail_from(), of a norm right behind `given`, a tail with no activation.
Tail tail_after(const Net& net, std::size_t layer, const Tail& given);

/// The dense layer at `layer`, as it multiplies and adds.
Affine dense_affine(const Net& net, std::size_t layer);

/// The activation at `layer`, its slopes those of the net where it is a prelu. Throws keel::Error
/// for another kind of layer.
LayerActivation activation_of(const Net& net, std::size_t layer);

/// Throws keel::Error, of `what` that is too small for double, where `is` is false.
void check_large_enough(bool is, const char* what = "weights");

}  // namespace keel
