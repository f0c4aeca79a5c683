// A table's text as fields, line by line, and what is said of one that is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.h"

namespace keel {

/// A field as a message shows it.
inline std::string field_text(std::string_view field) { return shown(field, 40); }

struct Place {
  std::int64_t line = 0, column = 0;  ///< from 1; 0: the file, or the line, as a whole
  std::string_view name = {};         ///< the column's, where it has one
};

/// "line 3, column 2 (price): ".
std::string text_of(const Place& place);

/// Throws DataError("file: line 3, column 2 (price): message").
template <class... Parts>
[[noreturn]] void refuse(const std::string& file, const Place& place,
                         fmt::format_string<Parts...> format, Parts&&... parts) {
  throw DataError(file, text_of(place) + fmt::format(format, std::forward<Parts>(parts)...),
                  place.line, place.column);
}

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
std::string_view without_blanks(std::string_view text);

enum class Reading { number, not_finite, not_a_number };

Reading parse_number(std::string_view field, double& value);

/// `text`, or where that is no UTF-8, as a table of an older program's, what it says as Latin-1.
std::string as_utf8(std::string_view text);

/// Splits one line after another into fields, reusing its memory: what split() returns is there
/// until it is called again. What sets fields apart the table's first lines say.
class Splitter {
 public:
  Splitter(const std::string& file, std::string_view text);

  /// What fields are set apart by, for a message.
  const char* between() const;

  /// Throws DataError for a quote that is not closed or is followed by more.
  const std::vector<std::string_view>& split(std::string_view line, std::int64_t number);

  /// Whether each field of the line that was split last was quoted.
  bool all_quoted() const { return quoted_ == fields_.size(); }

 private:
  std::string_view trim(std::string_view text) const;
  std::string_view take_plain(std::string_view& rest);
  std::string_view take_quoted(std::string_view& rest);

  const std::string& file_;
  char separator_ = ' ';
  std::int64_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::size_t quoted_ = 0;
  std::string unquoted_;
};

/// Cuts the next line, without its end, off `text`.
std::string_view take_line(std::string_view& text);

}  // namespace keel
