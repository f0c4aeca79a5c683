// What `keel reproduce fig1`, `fig5`, `fig6`, `rmsnorm`, `residual` and
// `activations` write and print.
#pragma once

#include "reproduce.h"
#include "toy_figure.h"

namespace keel {

/// Trains, proves how far nets go that something bounds, whatever x, then writes curves.csv (every
/// panel's mean, 95% interval and seeds by x) and training.csv (the data).
Reproduced reproduce_toy(const std::string& name, const std::vector<ToyNet>& nets,
                         const Context& context, const ReproduceOptions& options,
                         const OutputFolder& folder);

}  // namespace keel
