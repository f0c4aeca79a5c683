// A net as a sum of tails, of one set each.
#pragma once

#include <memory>
#include <optional>

#include "../nn/net.h"
#include "tail.h"

namespace keel {

/// Where the SPEC is bounded from: the index of its last layernorm or rmsnorm that no residual
/// passes by, or else of the first such tanh or sigmoid; the SPEC's length where there is none.
/// Where a norm within a residual stands behind it, and a tanh or sigmoid behind that which no
/// residual passes by, it is that: then one tail is all.
std::size_t bounding_layer(const Spec& spec);

struct TailTerm;
/// Of a value of each term, each at a point of its own set.
using TailSum = std::vector<TailTerm>;

/// A tail of its set; or, where there is something `below`, of any sum of that: the tail's own set
/// says nothing then, and its first map takes the sum itself.
struct TailTerm {
  Tail tail{};
  std::shared_ptr<const TailSum> below{};
};

/// f(x), for every x, as such a sum. There is one term, unless norms stand within residuals behind
/// bounding_layer(): what such a residual adds is a tail from its last norm on, whatever that is
/// given. An activation of a sum, or a residual with no norm behind one, takes all of it below.
/// `narrow`: use what the layers before a norm allow; without, its output may be any of its length,
/// of mean 0 behind a Layer Norm. Throws keel::Error for an ensemble, where there is no such layer,
/// and where products of weights leave double's range downward, so that no margin would tell.
TailSum tail_sum_of(const Net& net, bool narrow = true);

/// f(x) where |x| <= within or, where there are `ranges`, every feature is in its own: from x
/// itself on or, where a norm that no residual passes by is in the way, from that on, if there is
/// one such norm, with nothing but dense layers before it; else that x is bounded tells nothing of
/// f, and there is none. Throws what tail_sum_of() does, but asks for no such layer.
std::optional<TailSum> tail_sum_within(const Net& net, double within,
                                       const std::vector<Interval>& ranges = {},
                                       bool narrow = true);

/// The first tail of all, from bounding_layer().
const Tail& first_tail(const TailSum& sum);

std::int64_t sets_of(const TailSum& sum);         ///< all tails that have one
std::int64_t activations_of(const TailSum& sum);  ///< behind a set, at most

/// For messages: what such a word has to be, where the SPEC has residuals; else nothing.
const char* outside_residuals(const Spec& spec);

}  // namespace keel
