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

// How often `separator` stands in a line outside of quotes.
std::int64_t count_of(char separator, std::string_view line) {
  std::int64_t count = 0;
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    count += !quoted && c == separator;
  }
  return count;
}

// Whether each of the first lines has as many of them.
bool as_many_in_all(char separator, std::string_view text) {
  constexpr int kLines = 100;
  const std::int64_t first = count_of(separator, take_line(text));
  for (int i = 1; i < kLines && !text.empty(); ++i)
    if (count_of(separator, take_line(text)) != first) return false;
  return true;
}

// Whether a table's first line is one of fields that tabs set apart, and not of numbers that blanks
// of both kinds do: none is empty, what has a blank in it begins with no number, and where nothing
// has one, the next lines have as many tabs.
bool has_fields_by_tabs(std::string_view text) {
  bool words = false;
  std::string_view rest = text, line = take_line(rest);
  for (bool more = true; more;) {
    const std::size_t end = line.find('\t');
    const std::string_view field = without_blanks(line.substr(0, end));
    const std::size_t blank = field.find(' ');
    double ignored = 0;
    if (field.empty() || (blank != field.npos && !field.starts_with('"') &&
                          parse_number(field.substr(0, blank), ignored) != Reading::not_a_number))
      return false;
    words = words || blank != field.npos;
    more = end != line.npos;
    if (more) line.remove_prefix(end + 1);
  }
  return words || as_many_in_all('\t', text);
}

}  // namespace

// A semicolon before a comma, which may then be a decimal one.
Splitter::Splitter(const std::string& file, std::string_view text) : file_(file) {
  std::string_view rest = text;
  const std::string_view first = take_line(rest);
  const bool comma = count_of(',', first) > 0;
  if (count_of(';', first) > 0 && (!comma || as_many_in_all(';', text)))
    separator_ = ';';
  else if (comma)
    separator_ = ',';
  else if (count_of('\t', first) > 0 && has_fields_by_tabs(text))
    separator_ = '\t';
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
  quoted_ = 0;
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
  ++quoted_;
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

namespace {

// Of a sequence's second byte, by its first: Unicode 15, table 3-7.
bool is_second(unsigned char first, unsigned char second) {
  return second >= (first == 0xE0   ? 0xA0
                    : first == 0xF0 ? 0x90
                                    : 0x80) &&
         second <= (first == 0xED   ? 0x9F
                    : first == 0xF4 ? 0x8F
                                    : 0xBF);
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
    };
    const unsigned char c = byte(0);
    if ((c >= 0x80 && c < 0xC2) || c > 0xF4) return false;
    const std::size_t more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    for (std::size_t k = 1; k <= more; ++k)
      if (k == 1 ? !is_second(c, byte(1)) : (byte(k) & 0xC0) != 0x80) return false;
    i += 1 + more;
  }
  return true;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string utf8;
  for (char byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    if (c < 0x80) {
      utf8 += byte;
    } else {
      utf8 += static_cast<char>(0xC0 | c >> 6);
      utf8 += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return utf8;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace keel
