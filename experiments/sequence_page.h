// What `keel reproduce fig7` and `prenorm` write and print.
#pragma once

#include <string>
#include <vector>

#include "reproduce.h"
#include "sequence_figure.h"

namespace keel {

/// Trains the kinds of nets, then writes curves.csv, what each makes of each sequence, by i, and
/// far.csv, how large |f| gets of b i, by b. `norms` says in words where norms stand. There is a
/// problem where a net passed its proved bound.
Reproduced reproduce_sequences(const char* figure, const std::vector<SequenceKind>& kinds,
                               const std::string& norms, const Context& context,
                               const ReproduceOptions& chosen, const OutputFolder& folder);

}  // namespace keel
