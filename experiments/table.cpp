#include "table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace keel {
namespace {

// A field as a message shows it.
std::string field_text(std::string_view field) { return shown(field, 40); }

struct Place {
  std::int64_t line = 0, column = 0;  // from 1; 0: the file, or the line, as a whole
  std::string_view name = {};         // the column's, where it has one
};

// Throws DataError("file: line 3, column 2 (price): message").
template <class... Parts>
[[noreturn]] void refuse(const std::string& file, const Place& place,
                         fmt::format_string<Parts...> format, Parts&&... parts) {
  std::string where;
  if (place.line > 0) where = fmt::format("line {}", place.line);
  if (place.column > 0) where += fmt::format(", column {}", place.column);
  if (!place.name.empty()) where += fmt::format(" ({})", field_text(place.name));
  if (!where.empty()) where += ": ";
  throw DataError(file, where + fmt::format(format, std::forward<Parts>(parts)...), place.line,
                  place.column);
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

enum class Reading { number, not_finite, not_a_number };

Reading parse_number(std::string_view field, double& value) {
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  const char* end = field.data() + field.size();
  const auto [stop, problem] = std::from_chars(field.data(), end, value);
  if (field.empty() || stop != end || problem == std::errc::invalid_argument)
    return Reading::not_a_number;
  // Too small and too large are one error to from_chars; strtod tells them apart.
  if (problem == std::errc::result_out_of_range)
    value = std::strtod(std::string(field).c_str(), nullptr);
  return std::isfinite(value) ? Reading::number : Reading::not_finite;
}

// Splits one line after another into fields, reusing its memory.
class Splitter {
 public:
  Splitter(const std::string& file, std::string_view first_line) : file_(file) {
    bool quoted = false;
    for (char c : first_line) {
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == ';') separator_ = ';';  // before commas, which may then be decimal commas
      if (c == ',' && separator_ == ' ') separator_ = ',';
    }
    if (separator_ == ' ' && has_names_of_words(first_line)) separator_ = '\t';
  }

  /// What fields are set apart by, for a message.
  const char* between() const {
    return separator_ == ' '    ? "blanks"
           : separator_ == '\t' ? "tabs"
           : separator_ == ';'  ? "';'"
                                : "','";
  }

  const std::vector<std::string_view>& split(std::string_view line, std::int64_t number) {
    fields_.clear();
    unquoted_.clear();
    unquoted_.reserve(line.size());  // views into it must stay valid
    line_ = number;
    std::string_view rest = trim(line);
    while (true) {
      fields_.push_back(rest.starts_with('"') ? take_quoted(rest) : take_plain(rest));
      if (separator_ == ' ') {
        rest = trim(rest);
        if (rest.empty()) return fields_;
      } else {
        if (rest.empty()) return fields_;
        rest = trim(rest.substr(1));
      }
    }
  }

 private:
  // Where a tab ends a field, it is no blank: a field may be empty.
  std::string_view trim(std::string_view text) const {
    if (separator_ != '\t') return without_blanks(text);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }

  // Names set apart by tabs, one of them with a blank in it: "Water (kg)\tAge".
  static bool has_names_of_words(std::string_view line) {
    bool words = false;
    std::size_t names = 0;
    for (line = without_blanks(line); !line.empty(); ++names) {
      const std::size_t end = std::min(line.find('\t'), line.size());
      const std::string_view name = without_blanks(line.substr(0, end));
      double ignored = 0;
      const std::string_view first = name.substr(0, name.find(' '));
      if (name.empty() || parse_number(first, ignored) != Reading::not_a_number) return false;
      words |= name.find(' ') != std::string_view::npos;
      line = line.substr(std::min(end + 1, line.size()));
    }
    return words && names > 1;
  }

  std::string_view take_plain(std::string_view& rest) {
    const std::size_t end = std::min(
        separator_ == ' ' ? rest.find_first_of(" \t") : rest.find(separator_), rest.size());
    const std::string_view field = trim(rest.substr(0, end));
    rest.remove_prefix(end);
    return field;
  }

  std::string_view take_quoted(std::string_view& rest) {
    const std::size_t begin = unquoted_.size();
    const auto column = static_cast<std::int64_t>(fields_.size()) + 1;
    std::size_t i = 1;
    for (;; ++i) {
      if (i >= rest.size()) refuse(file_, {line_, column}, "the quote is not closed on this line");
      if (rest[i] == '"') {
        if (i + 1 >= rest.size() || rest[i + 1] != '"') break;
        ++i;  // "" stands for one quote
      }
      unquoted_ += rest[i];
    }
    rest = rest.substr(i + 1);
    if (separator_ != ' ') rest = trim(rest);
    if (!rest.empty() && !(separator_ == ' ' ? is_blank(rest[0]) : rest[0] == separator_))
      refuse(file_, {line_, column}, "got '{}' after a closing quote", field_text(rest));
    return trim(std::string_view(unquoted_).substr(begin));
  }

  const std::string& file_;
  char separator_ = ' ';
  std::int64_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

// Cuts the next line, without its end, off `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string counted(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

void read_row(Table& table, const std::vector<std::string_view>& fields, std::int64_t line,
              const char* between) {
  const auto found = static_cast<std::int64_t>(fields.size());
  if (found != table.cols)
    refuse(table.file, {line}, "got {}, wanted {} as on line 1, set apart by {}",
           counted(found, "field"), table.cols, between);
  for (std::int64_t col = 0; col < table.cols; ++col) {
    double value = 0;
    const Reading reading = parse_number(fields[col], value);
    if (reading == Reading::number) {
      table.values.push_back(value);
      continue;
    }
    const Place place{line, col + 1, table.names.empty() ? std::string_view() : table.names[col]};
    refuse(table.file, place, "got {}, wanted a {}number{}",
           fields[col].empty() ? "nothing" : fmt::format("'{}'", field_text(fields[col])),
           reading == Reading::not_finite ? "finite " : "",
           line == 1 && reading == Reading::not_a_number ? " (a header has none)" : "");
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

}  // namespace

Table parse_table(std::string_view text, const std::string& file, std::int64_t min_rows) {
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
  std::string_view line = take_line(text);
  Splitter splitter(table.file, line);
  const auto& fields = splitter.split(line, 1);
  table.cols = static_cast<std::int64_t>(fields.size());
  double ignored = 0;
  const bool header = std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
    return parse_number(field, ignored) == Reading::not_a_number;
  });
  // Every field has a character and an end: a wide header over many short lines asks for no more.
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n') + (text.empty() ? 0 : 1);
  table.values.reserve(
      std::min(static_cast<std::size_t>(lines * table.cols), (line.size() + text.size()) / 2 + 2));
  if (header)
    check_header(file, fields);
  else if (!text.empty())
    check_no_header(file, fields);
  if (header)
    table.names.assign(fields.begin(), fields.end());
  else
    read_row(table, fields, 1, splitter.between());
  for (std::int64_t number = 2; !text.empty(); ++number) {
    line = take_line(text);
    if (without_blanks(line).empty())
      refuse(file, {number}, "got a blank line, wanted {} as on line 1",
             counted(table.cols, "field"));
    read_row(table, splitter.split(line, number), number, splitter.between());
  }
  table.rows = static_cast<std::int64_t>(table.values.size()) / table.cols;
  if (table.rows < min_rows)
    refuse(file, {}, "got {} of numbers, wanted at least {}", counted(table.rows, "row"), min_rows);
  return table;
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

Table read_table(const std::string& path, std::int64_t min_rows) {
  return parse_table(read_file(path), path, min_rows);
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

std::vector<double> column_of(const Table& table, const std::string& which) {
  const std::int64_t column = find_column(table, which);
  std::vector<double> values;
  for (std::int64_t row = 0; row < table.rows; ++row) values.push_back(table.at(row, column));
  return values;
}

}  // namespace keel
