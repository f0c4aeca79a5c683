// What is said of transformers' predictions of a series, and of how far they can go.
#pragma once

#include <cstdint>
#include <vector>

#include "sequence_bound.h"
#include "sequence_units.h"
#include "train_report.h"

namespace keel {

/// What is proved and found of each member: to summary.json's numbers, and for people, a row a
/// line. Throws keel::Error where the units carry a bound past the number range.
TextRows add_bounds(Json& numbers, const std::vector<SequenceBound>& of_members,
                    const std::vector<std::uint64_t>& seeds, const SequenceUnits& units);

/// How well `wanted` was predicted: to the numbers by that name, and to a table of name, rows, RMSE
/// and R^2.
Fit add_sequence_fit(Json& numbers, TextRows& table, const char* name, const MemberRows& predicted,
                     const std::vector<double>& wanted);

/// A note where the one-step predictions of nets from a file fit worse than the series' mean does.
void note_another_series(const Fit& one_step, const Context& context);

}  // namespace keel
