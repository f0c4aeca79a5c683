// Errors: one tag (who refuses), what it got, what it wanted.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keel {

/// Somebody else's text as a message shows it: control characters, line ends too, become '?', and
/// what is longer than `longest` bytes ends in "...".
inline std::string shown(std::string_view text, std::size_t longest = 80) {
  std::size_t end = std::min(text.size(), longest);
  while (end < text.size() && end > 0 && (text[end] & 0xC0) == 0x80) --end;  // within a character
  std::string line(text.substr(0, end));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  return end < text.size() ? line + "..." : line;
}

inline constexpr std::size_t kLongestMessage = 8000;  ///< bytes: a path alone may have 4095

/// Everything keel refuses throws an Error; what() is one line: "tag: got ..., wanted ...".
class Error : public std::runtime_error {
 public:
  Error(std::string_view tag, std::string_view message)
      : std::runtime_error(shown(fmt::format("{}: {}", tag, message), kLongestMessage)),
        tag_(tag) {}

  /// Who refused: the op, class or command, e.g. "layer_norm".
  const std::string& tag() const noexcept { return tag_; }

 private:
  std::string tag_;
};

/// Shapes, ranks, sizes or dtypes that do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A device that is not there, or two devices where one is needed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be had: the message holds bytes needed, bytes free, and what to try.
class OutOfMemory : public Error {
 public:
  OutOfMemory(std::string_view tag, std::string_view message, std::size_t needed, std::size_t free)
      : Error(tag, message), needed_(needed), free_(free) {}
  std::size_t needed() const noexcept { return needed_; }
  std::size_t free() const noexcept { return free_; }

 private:
  std::size_t needed_, free_;
};

/// Data that cannot be used; the tag is the file. Line and column count from 1, as editors do;
/// 0: the file, or the line, as a whole.
class DataError : public Error {
 public:
  DataError(std::string_view file, std::string_view message, std::int64_t line = 0,
            std::int64_t column = 0)
      : Error(file, message), line_(line), column_(column) {}
  const std::string& file() const noexcept { return tag(); }
  std::int64_t line() const noexcept { return line_; }
  std::int64_t column() const noexcept { return column_; }

 private:
  std::int64_t line_, column_;
};

/// A matrix with an eigenvalue that is not above zero, or not by more than rounding takes away. The
/// pivot is the row, from 0, at which a factorisation stopped; -1 where none did. Repeated rows:
/// pairs (row, earlier row that it repeats), from 0; they alone make a kernel's matrix singular.
class NotPositiveDefinite : public Error {
 public:
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  NotPositiveDefinite(std::string_view tag, std::string_view message, std::int64_t pivot,
                      Pairs repeated_rows = {})
      : Error(tag, message), pivot_(pivot), repeated_rows_(std::move(repeated_rows)) {}
  std::int64_t pivot() const noexcept { return pivot_; }
  const Pairs& repeated_rows() const noexcept { return repeated_rows_; }

 private:
  std::int64_t pivot_;
  Pairs repeated_rows_;
};

template <class Kind = Error, class... Parts>
[[noreturn]] void fail(std::string_view tag, fmt::format_string<Parts...> format,
                       Parts&&... parts) {
  throw Kind(tag, fmt::format(format, std::forward<Parts>(parts)...));
}

/// Throws Kind("tag: formatted parts") unless `holds`.
/// check<ShapeError>(gain.elements() == cols, "layer_norm", "gain has {} elements, x {} needs {}",
/// ...);
template <class Kind = Error, class... Parts>
void check(bool holds, std::string_view tag, fmt::format_string<Parts...> format,
           Parts&&... parts) {
  if (!holds) [[unlikely]]
    fail<Kind>(tag, format, std::forward<Parts>(parts)...);
}

/// 3.0 GiB rather than 3221225472: for messages and tables.
std::string human_bytes(std::size_t bytes);

}  // namespace keel
