// --hold-out: rows of a table that nothing is learnt from, to judge by what was learnt from others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.h"
#include "examples.h"

namespace keel {

/// What `keel train` writes into the metadata of weights where it held rows out: how many of how
/// many, and the seed, which tell which.
inline constexpr const char* kHeldOutKey = "keel.held_out";

/// The rows of a table, some of them held out.
struct RowSplit {
  Examples training, held_out;
  std::vector<std::int64_t> rows{};  ///< which were held out, from 0, ascending
  std::string text{};                ///< kHeldOutKey's; "" where none were
};

/// --hold-out, a number of rows, or a share of them below 1, in place of --test, which is declared.
void declare_hold_out(CLI::App& app, double& hold_out);

/// `hold_out` of the rows, or that share of them, rounded; 0: none. Which, `seed` and the table's
/// number of rows say. Throws DataError, naming `file`, where none would be left, or held out.
RowSplit split_of(const Examples& all, double hold_out, std::uint64_t seed,
                  const std::string& file);

/// As `text` says. Throws DataError, naming the file `weights`, where it is none of kHeldOutKey's,
/// and naming the table `file` where it has another number of rows.
RowSplit split_as(const std::string& text, const Examples& all, const std::string& weights,
                  const std::string& file);

}  // namespace keel
