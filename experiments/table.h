// Tables of numbers from text: CSV (commas or semicolons) or columns set apart by blanks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.h"

namespace keel {

struct Table {
  std::string file;                ///< where it came from, for messages
  std::vector<std::string> names;  ///< one a column; empty where the file has no header
  std::int64_t rows = 0, cols = 0;
  std::vector<double> values;   ///< [rows, cols], row-major, every one finite; 0 where ignored
  std::vector<bool> ignored{};  ///< [cols]: whether the column was left out; or empty

  bool ignores(std::int64_t col) const { return !ignored.empty() && ignored[col]; }
  double at(std::int64_t row, std::int64_t col) const { return values[row * cols + col]; }
};

/// Which columns of a table, whose names and number of columns are known, to leave out: they may
/// hold anything, dates say. None: all are read.
using IgnoredColumns = std::function<std::vector<std::int64_t>(const Table&)>;

/// Reads a table. The first line is a header where none of its fields is a number, or where all of
/// them are "quoted", as fields may be, and the second line's are not. A BOM, CRLF and blank lines
/// at the end are accepted, and of names Latin-1, which becomes UTF-8.
/// Throws DataError, naming file, line and column, for a field that is missing, not a number,
/// infinite or NaN, for rows of different lengths, and for fewer than `min_rows` rows.
Table read_table(const std::string& path, std::int64_t min_rows = 1,
                 const IgnoredColumns& ignored = {});

/// The same from memory; `file` is what messages call it.
Table parse_table(std::string_view text, const std::string& file, std::int64_t min_rows = 1,
                  const IgnoredColumns& ignored = {});

/// The column called `which` or, where none is, of that number: from 0, or from the end where
/// negative. Throws DataError that lists the columns there are.
std::int64_t find_column(const Table& table, const std::string& which);

/// The values of that column of a file, a row each. Other columns may hold anything, dates say.
/// Throws DataError as read_table() and find_column().
std::vector<double> read_column(const std::string& path, const std::string& which);

/// The same from memory.
std::vector<double> parse_column(std::string_view text, const std::string& file,
                                 const std::string& which);

/// The whole of a file. Throws DataError where it is missing, a folder, or cannot be read.
std::string read_file(const std::string& path);

}  // namespace keel
