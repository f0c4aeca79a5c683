// Files that appear whole or not at all, and the folder a command writes them to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

/// A file being written: under a temporary name beside `path` until commit() renames it. Without
/// commit() nothing is left of it, and a file that was at `path` stays as it was.
class OutputFile {
 public:
  /// Makes the folders that are missing. Throws keel::Error where `path` cannot be written.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  void check_written(bool holds) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& path, std::string_view content);

/// Throws keel::Error where `path` could not be written: to be asked before any work starts.
void check_writable(const std::filesystem::path& path);

/// Where a command writes: made, and tried, before any work starts.
class OutputFolder {
 public:
  /// Throws keel::Error where the folder cannot be made or written to.
  explicit OutputFolder(std::filesystem::path folder);

  std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view content) const {
    write_file(path(name), content);
  }

 private:
  std::filesystem::path folder_;
};

/// The shortest text that reads back as the same number; "nan", "inf".
std::string shortest(double value);
std::string shortest(float value);

/// A CSV file built row by row.
class Csv {
 public:
  explicit Csv(std::vector<std::string> header);

  Csv& add(std::string_view text);  ///< quoted where it holds a comma, a quote or a line end
  Csv& add(const char* text) { return add(std::string_view(text)); }
  Csv& add(float value) { return add(std::string_view(shortest(value))); }
  Csv& add(double value) { return add(std::string_view(shortest(value))); }
  Csv& add(std::int64_t value) { return add(std::string_view(std::to_string(value))); }

  /// Throws keel::Error where the row has not as many fields as the header.
  void end_row();
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t columns_ = 0, added_ = 0;
};

}  // namespace keel
