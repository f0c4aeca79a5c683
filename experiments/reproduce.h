// keel reproduce: one entry for each figure or table of the paper.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "output.h"

namespace keel {

struct ReproduceOptions {
  std::optional<std::int64_t> seeds, epochs;  ///< empty: as in the paper
};

struct Reproduced {
  Json numbers;       ///< goes into summary.json
  std::string table;  ///< for people
};

struct Experiment {
  const char* name;
  const char* summary;
  bool in_figures;  ///< `keel reproduce figures` includes it: needs no data
  bool drawn;       ///< plot.py draws it

  /// Does the work and writes every file but summary.json and the pictures into the folder.
  Reproduced (*run)(const Context&, const ReproduceOptions&, const OutputFolder&);
};

/// Every experiment, in the paper's order.
const std::vector<Experiment>& experiments();

Reproduced reproduce_fig1(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_fig5(const Context&, const ReproduceOptions&, const OutputFolder&);

}  // namespace keel
