#include "fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace keel {

std::string text_of(const Place& place) {
  std::string where;
  if (place.line > 0) where = fmt::format("line {}", place.line);
  if (place.column > 0) where += fmt::format(", column {}", place.column);
  if (!place.name.empty()) where += fmt::format(" ({})", field_text(place.name));
  return where.empty() ? where : where + ": ";
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

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

namespace {

// Names set apart by tabs, one of them with a blank in it: "Water (kg)\tAge".
bool has_names_of_words(std::string_view line) {
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

}  // namespace

Splitter::Splitter(const std::string& file, std::string_view first_line) : file_(file) {
  bool quoted = false;
  for (char c : first_line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ';') separator_ = ';';  // before commas, which may then be decimal commas
    if (c == ',' && separator_ == ' ') separator_ = ',';
  }
  if (separator_ == ' ' && has_names_of_words(first_line)) separator_ = '\t';
}

const char* Splitter::between() const {
  return separator_ == ' '    ? "blanks"
         : separator_ == '\t' ? "tabs"
         : separator_ == ';'  ? "';'"
                              : "','";
}

const std::vector<std::string_view>& Splitter::split(std::string_view line, std::int64_t number) {
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

// Where a tab ends a field, it is no blank: a field may be empty.
std::string_view Splitter::trim(std::string_view text) const {
  if (separator_ != '\t') return without_blanks(text);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string_view Splitter::take_plain(std::string_view& rest) {
  const std::size_t end =
      std::min(separator_ == ' ' ? rest.find_first_of(" \t") : rest.find(separator_), rest.size());
  const std::string_view field = trim(rest.substr(0, end));
  rest.remove_prefix(end);
  return field;
}

std::string_view Splitter::take_quoted(std::string_view& rest) {
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

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace keel
