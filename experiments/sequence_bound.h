// What is proved of a transformer's predictions, a search that tries to break it, and what is said
// of both: for `keel forecast`, and `keel certify` of a transformer's file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../nn/safetensors.h"
#include "../ntk/interval.h"
#include "certify_search.h"
#include "sequence_training.h"
#include "train_report.h"

namespace keel {

/// Metadata of a file of weights: a series' centre and scale, where the nets saw its values.
inline constexpr const char *kCentreKey = "keel.centre", *kScaleKey = "keel.scale";

/// A series' values are those of nets times `scale`, plus `centre`.
struct SequenceUnits {
  double centre = 0, scale = 1;
};

/// Those that the file at `path` names; where it names none, the nets' own, with a note. Throws
/// keel::Error where it names one alone, or they are no numbers that can be used.
SequenceUnits units_of_file(const SafeTensors& file, const std::string& path,
                            const Context& context);

/// One member's, in the net's units.
struct SequenceBound {
  std::optional<Interval> proved;  ///< of every prediction of every sequence; none without LN
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

using TextRows = std::vector<std::vector<std::string>>;

/// To summary.json's numbers; and for people, a row a line. Throws keel::Error where the units
/// carry a bound past the number range.
TextRows add_bounds(Json& numbers, const std::vector<SequenceBound>& of_members,
                    const std::vector<std::uint64_t>& seeds, const SequenceUnits& units);

/// How well `wanted` was predicted: to the numbers by that name, and to a table of name, rows, RMSE
/// and R^2.
Fit add_sequence_fit(Json& numbers, TextRows& table, const char* name, const MemberRows& predicted,
                     const std::vector<double>& wanted);

}  // namespace keel
