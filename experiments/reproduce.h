// keel reproduce: one entry for each figure or table of the paper, and for what goes beyond it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "output.h"
#include "table1.h"

namespace keel {

struct ReproduceOptions {
  std::optional<std::int64_t> seeds, epochs;  ///< empty: as in the paper
  Table1Options table1{};
};

struct Reproduced {
  Json numbers;           ///< goes into summary.json
  std::string table;      ///< for people
  std::string problem{};  ///< what does not hold, where something should: exit code 1, after all is
                          ///< written
  std::string stopped{};  ///< by Ctrl-C, and how to go on: nothing is written
  bool draws = true;      ///< false: these numbers have no picture
};

struct Experiment {
  const char* name;
  const char* summary;
  bool in_figures;      ///< `keel reproduce figures` includes it: needs no data,
  bool takes_data;      ///< or takes --data
  bool trains;          ///< takes --epochs
  const char* picture;  ///< what plot.py calls it; null: none

  /// Does the work and writes every file but summary.json and the pictures into the folder.
  Reproduced (*run)(const Context&, const ReproduceOptions&, const OutputFolder&);
};

/// Every experiment: the paper's figures in its order, then what has other data or none.
const std::vector<Experiment>& experiments();

Reproduced reproduce_fig1(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_fig2(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_fig5(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_fig6(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_fig7(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_activations(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_distance(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_prenorm(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_residual(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_rmsnorm(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_table1(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_theory(const Context&, const ReproduceOptions&, const OutputFolder&);
Reproduced reproduce_uci(const Context&, const ReproduceOptions&, const OutputFolder&);

}  // namespace keel
