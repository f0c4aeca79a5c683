// Rows to learn from: a table split into features and a target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "table.h"

namespace keel {

struct Examples {
  std::int64_t rows = 0, features = 0;
  std::vector<double> x;           ///< [rows, features]
  std::vector<double> y;           ///< [rows]; empty where the table has no target
  std::vector<std::string> names;  ///< one a feature: its header, or "column 3 (from 0)"
  bool named = false;              ///< whether these are a header's, in which none repeats
};

/// --ignore's columns, each a name or a number from 0, or from the end where negative. The table
/// must have them.
IgnoredColumns ignored_columns(std::vector<std::string> columns);

/// The same, but for names that the table does not have.
IgnoredColumns ignored_if_there(std::vector<std::string> columns);

/// Those of a table to be predicted whose training table is `training`: where both have a header in
/// which no name repeats, all columns that the other lacks or ignores; else by place, as
/// test_examples() has it.
IgnoredColumns ignored_as_in(const Table& training, const std::string& target);

/// These columns as features, in this order, and `target` unless it is -1.
Examples gathered(const Table& table, const std::vector<std::int64_t>& features,
                  std::int64_t target);

/// Whether no name repeats.
bool all_differ(std::vector<std::string> names);

/// Those rows, in this order.
Examples examples_at(const Examples& all, std::span<const std::int64_t> rows);

/// Every column but `target` (a name, or a number from 0), and those ignored, is a feature.
Examples training_examples(const Table& table, const std::string& target);

/// Every column that is not ignored is a feature.
Examples without_target(const Table& table);

/// The same features and target from another table: by name where both have a header, else by
/// place. The target may be absent from it. Throws DataError naming what is missing.
Examples test_examples(const Table& table, const Table& training, const std::string& target);

/// A line that says so where only one of the two has a header, and place alone tells; else nothing.
std::string order_note(const Table& table, const Table& training);

}  // namespace keel
