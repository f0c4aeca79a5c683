// Small data that look like the protein data, and `keel reproduce table1` on them.
#pragma once

#include <cmath>

#include "../../core/random.h"
#include "helpers.h"

namespace keel {

// 300 proteins of ten columns, 40 of them large; RMSD depends on the first two features. `repeats`
// rows at the end are exact copies of rows at the beginning, with other targets. RMSD is times
// `scale`.
inline std::string small_table1_data(int repeats = 0, double scale = 1) {
  const auto draws = normal({300, 10}, {5, 0}).to_vector<double>();
  std::string text = "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\n";
  for (int row = 0; row < 300 + repeats; ++row) {
    const double* z = draws.data() + row % 300 * 10;
    const double area =
        row % 300 < 260 ? 10000 + 2500 * std::tanh(z[0]) : 21000 + 900 * std::tanh(z[0]);
    const double target = 8 + 3 * std::tanh(z[0]) + z[1] + (row >= 300);
    text += fmt::format("{},{}", scale * target, area);
    for (int f = 1; f < 9; ++f) text += fmt::format(",{}", z[f]);
    text += "\n";
  }
  return text;
}

struct Table1Data {
  TemporaryFolder folder;
  std::string csv = folder.file("CASP.csv", small_table1_data());

  Ran run(const std::string& out, const std::vector<std::string>& more,
          const std::string& epochs = "30") const {
    std::vector<std::string> arguments = {
        "reproduce", "table1",    "--data",   csv,   "--out",    out,   "--seed",
        "3",         "--no-plot", "--device", "cpu", "--epochs", epochs};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
};

}  // namespace keel
