// Table 1 and Figure 3: what each method predicts for proteins larger than all it was trained on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace keel {

/// What the paper's text leaves open about its nets.
struct Recipe {
  std::string standardise = "x";              ///< inputs, or inputs and target (xy)
  bool ln_affine = true;                      ///< Layer Norm with trainable gain and bias
  std::string parameterisation = "standard";  ///< or ntk
  std::string weights = "normal";             ///< or uniform

  std::string text() const;  ///< "inputs standardised, LN with gain and bias, ..."
  std::string name() const;  ///< "x-affine-standard", "x-affine-standard-uniform": for files
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

struct Table1Options {
  std::string data;                  ///< CASP.csv, CASP.txt, or the folder of one
  std::vector<std::string> methods;  ///< empty: all
  Recipe recipe;
  std::int64_t ntk_rows = 0;          ///< training rows of the exact regressions; 0: all
  std::int64_t ntk_seeds = 1;         ///< splits on which they are solved
  std::optional<double> ntk_ridge{};  ///< relative; empty: chosen on held-out training rows
  bool resume = false;
  bool recipes = false;  ///< the grid of recipes rather than the table
};

/// Adds the options; what they were given ends in `options`, their names in `given`.
void declare_table1(CLI::App& app, Table1Options& options);

}  // namespace keel
