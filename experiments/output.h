// The folder a command writes to, CSV files, and files in one go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/output_file.h"

namespace keel {

void write_file(const std::filesystem::path& path, std::string_view content);

/// All of them or, where one cannot be written, none: [(path, content)].
void write_files(const std::vector<std::pair<std::filesystem::path, std::string>>& files);

/// Throws keel::Error where `path` could not be written: to be asked before any work starts.
void check_writable(const std::filesystem::path& path);

/// Throws keel::Error where a file would be written twice, or over one that is read. Empty paths
/// are files that nobody asked for.
void check_apart(const std::vector<std::string>& written, const std::vector<std::string>& read);

/// Where a command writes: tried before any work starts, made with its first file.
class OutputFolder {
 public:
  /// Throws keel::Error where the folder cannot be made or written to.
  explicit OutputFolder(std::filesystem::path folder);

  std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view content) const {
    write_file(path(name), content);
  }
  /// As write_files(): [(name, content)].
  void write(const std::vector<std::pair<std::string, std::string>>& files) const;

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
