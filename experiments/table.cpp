#include "table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include "fields.h"

namespace keel {
namespace {

std::string counted(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// How --ignore says a column: by its name, where that is one plain word, else by its number.
std::string option_text(const Table& table, std::int64_t col) {
  if (table.names.empty()) return std::to_string(col);
  const std::string& name = table.names[static_cast<std::size_t>(col)];
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  return plain && std::count(table.names.begin(), table.names.end(), name) == 1
             ? name
             : std::to_string(col);
}

// `only`: of this column alone, and nothing of what others hold. `hints`: whether columns can be
// ignored.
void read_row(Table& table, const std::vector<std::string_view>& fields, std::int64_t line,
              const char* between, std::optional<std::int64_t> only, bool hints) {
  const auto found = static_cast<std::int64_t>(fields.size());
  if (found != table.cols)
    refuse(table.file, {line}, "got {}, wanted {} as on line 1, set apart by {}",
           counted(found, "field"), table.cols, between);
  for (std::int64_t col = only.value_or(0); col < (only ? *only + 1 : table.cols); ++col) {
    double value = 0;
    const Reading reading = table.ignores(col) ? Reading::number : parse_number(fields[col], value);
    if (reading == Reading::number) {
      table.values.push_back(value);
      continue;
    }
    const bool is_text = reading == Reading::not_a_number && !fields[col].empty();
    const Place place{line, col + 1, table.names.empty() ? std::string_view() : table.names[col]};
    refuse(table.file, place, "got {}, wanted a {}number{}{}",
           fields[col].empty() ? "nothing" : fmt::format("'{}'", field_text(fields[col])),
           reading == Reading::not_finite ? "finite " : "",
           line == 1 && reading == Reading::not_a_number ? " (a header has none)" : "",
           is_text && hints
               ? fmt::format("; --ignore {} leaves the column out", option_text(table, col))
               : "");
  }
}

// A row of nothing but marks of missing values would be taken for names.
void check_header(const std::string& file, const std::vector<std::string_view>& fields) {
  constexpr std::string_view kMissing[] = {"",     "NA",   "N/A", "n/a", "null",
                                           "NULL", "None", "?",   "-"};
  if (std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
        return std::find(std::begin(kMissing), std::end(kMissing), field) != std::end(kMissing);
      }))
    refuse(file, {1}, "got {}, wanted names or numbers",
           fields[0].empty() ? "nothing but separators"
                             : fmt::format("'{}' first and no name", fields[0]));
}

// Tables without names are often written with a header 0, 1, 2, ... or 1, 2, 3, ...
void check_no_header(const std::string& file, const std::vector<std::string_view>& fields) {
  constexpr std::size_t kFewest[] = {3, 5};  // 1, 2, 3 may well be data
  for (const std::size_t from : {0, 1}) {
    bool counts = fields.size() >= kFewest[from];
    for (std::size_t i = 0; i < fields.size(); ++i) counts &= fields[i] == std::to_string(from + i);
    if (counts)
      refuse(file, {1}, "got the columns' numbers, {} to {}, wanted their names or data", from,
             from + fields.size() - 1);
  }
}

// Fields none of which is a number; or all of them quoted, where the next line's are not.
bool is_header(std::string_view line, std::string_view rest, Splitter& splitter) {
  const auto& fields = splitter.split(line, 1);
  double ignored = 0;
  if (std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
        return parse_number(field, ignored) == Reading::not_a_number;
      }))
    return true;
  if (!splitter.all_quoted() || rest.empty()) return false;
  splitter.split(take_line(rest), 2);
  return !splitter.all_quoted();
}

Table parse(std::string_view text, const std::string& file, std::int64_t min_rows,
            const std::string* column, const IgnoredColumns& ignored_of) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.find('\0') != std::string_view::npos)
    refuse(file, {}, "got binary data, wanted text: CSV or columns set apart by blanks");
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  if (text.empty()) refuse(file, {}, "got an empty file, wanted a table");
  if (text.find('\n') == std::string_view::npos && text.find('\r') != std::string_view::npos)
    refuse(file, {}, "got lines that end with a carriage return alone, wanted line feeds");

  Table table;
  table.file = file;
  Splitter splitter(table.file, text);
  std::string_view line = take_line(text);
  const bool header = is_header(line, text, splitter);
  const auto& fields = splitter.split(line, 1);
  table.cols = static_cast<std::int64_t>(fields.size());
  if (header)
    check_header(file, fields);
  else if (!text.empty())
    check_no_header(file, fields);
  for (std::size_t i = 0; header && i < fields.size(); ++i)
    table.names.push_back(as_utf8(fields[i]));
  if (ignored_of) {
    table.ignored.resize(fields.size());
    for (std::int64_t col : ignored_of(table)) table.ignored[static_cast<std::size_t>(col)] = true;
  }
  const bool hints = ignored_of != nullptr;
  const auto only = column ? std::optional(find_column(table, *column)) : std::nullopt;
  // Every field has a character and an end: a wide header over many short lines asks for no more.
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n') + (text.empty() ? 0 : 1);
  table.values.reserve(std::min(static_cast<std::size_t>(lines * (only ? 1 : table.cols)),
                                (line.size() + text.size()) / 2 + 2));
  if (!header) read_row(table, fields, 1, splitter.between(), only, hints);
  for (std::int64_t number = 2; !text.empty(); ++number) {
    line = take_line(text);
    if (without_blanks(line).empty())
      refuse(file, {number}, "got a blank line, wanted {} as on line 1",
             counted(table.cols, "field"));
    read_row(table, splitter.split(line, number), number, splitter.between(), only, hints);
  }
  table.rows = std::ssize(table.values) / (only ? 1 : table.cols);
  if (table.rows < min_rows)
    refuse(file, {}, "got {} of numbers, wanted at least {}", counted(table.rows, "row"), min_rows);
  return table;
}

}  // namespace

Table parse_table(std::string_view text, const std::string& file, std::int64_t min_rows,
                  const IgnoredColumns& ignored) {
  return parse(text, file, min_rows, nullptr, ignored);
}

std::vector<double> parse_column(std::string_view text, const std::string& file,
                                 const std::string& which) {
  return parse(text, file, 1, &which, {}).values;
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) refuse(path, {}, "there is no such file");
  if (std::filesystem::is_directory(path, ignored)) refuse(path, {}, "got a folder, wanted a file");
  // Some, like /dev/zero, have no end.
  if (std::filesystem::is_character_file(path, ignored) ||
      std::filesystem::is_block_file(path, ignored))
    refuse(path, {}, "got a device, wanted a file");
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (char part[1 << 16]; file.read(part, sizeof part) || file.gcount() > 0;)
    text.append(part, static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) refuse(path, {}, "the file cannot be read");
  return text;
}

Table read_table(const std::string& path, std::int64_t min_rows, const IgnoredColumns& ignored) {
  return parse_table(read_file(path), path, min_rows, ignored);
}

std::int64_t find_column(const Table& table, const std::string& which) {
  const auto found = std::find(table.names.begin(), table.names.end(), which);
  if (found != table.names.end()) {
    if (std::find(found + 1, table.names.end(), which) != table.names.end())
      refuse(table.file, {1}, "more than one column is called '{}': give its number, from 0",
             shown(which));
    return found - table.names.begin();
  }
  std::int64_t index = 0;
  const char* end = which.data() + which.size();
  const auto [stop, problem] = std::from_chars(which.data(), end, index);
  if (problem == std::errc() && stop == end && index >= -table.cols && index < table.cols)
    return index < 0 ? index + table.cols : index;

  if (table.names.empty())
    refuse(table.file, {}, "got column '{}', wanted 0 to {} (there is no header)", shown(which),
           table.cols - 1);
  constexpr std::size_t kListed = 30;
  std::string columns;
  for (std::size_t i = 0; i < std::min(kListed, table.names.size()); ++i)
    columns += fmt::format("{}{} {}", i ? ", " : "", i, field_text(table.names[i]));
  if (table.names.size() > kListed) columns += fmt::format(", ... {}", table.names.size() - 1);
  refuse(table.file, {1}, "got column '{}', wanted one of: {}", shown(which), columns);
}

std::vector<double> read_column(const std::string& path, const std::string& which) {
  return parse_column(read_file(path), path, which);
}

}  // namespace keel
