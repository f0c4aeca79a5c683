// What is proved of a transformer's predictions, and a search that tries to break it: for
// `keel forecast`, and `keel certify` of a transformer's file.
#pragma once

#include <optional>
#include <vector>

#include "../ntk/interval.h"
#include "certify_search.h"
#include "sequence_training.h"

namespace keel {

/// One member's, in the net's units.
struct SequenceBound {
  std::optional<Interval> proved;  ///< of every prediction there is; none where no norm bounds all
  Attack attack;                   ///< on |f| at the place where it is largest
};

/// Rays and gradient ascent of some seconds at the lengths of Figure 7. A longer sequence takes
/// more for each prediction, and has more coordinates to go along: there are fewer radii then, and
/// steps.
SearchOptions sequence_search(std::int64_t length, std::uint64_t seed);

/// Windows of `length` of these values, each with a value behind it (as training has them), evenly
/// spread: [s, length] float64. Too few values: one of zeros.
Tensor spread_windows(const std::vector<double>& values, std::int64_t length);

/// Of a net of one member. `wanted` as attack() has it. Throws keel::Error by the name of `who`
/// where more was found than was proved, and as bound_transformer().
SequenceBound bound_and_search(const Transformer& net, const Tensor& starts,
                               const SearchOptions& options, std::optional<double> wanted,
                               const char* who);

}  // namespace keel
