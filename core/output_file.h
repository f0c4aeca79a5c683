// OutputFile: a file that appears whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace keel {

/// A file being written: under a temporary name beside `path` until commit() renames it. Without
/// commit() nothing is left of it, nor of the folders made for it unless something else is in
/// them, and a file that was at `path` stays as it was. Where `path` is a link, the file that it
/// leads to is written; permissions stay those of a file that was there.
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
  // Folders that were not there, from the outermost. Their end removes those that are empty.
  struct Folders {
    std::vector<std::filesystem::path> made;
    ~Folders();
  };

  void open_temporary();
  void check_written(bool holds) const;

  std::filesystem::path path_, target_, temporary_;  // as asked for; where its links lead
  Folders folders_;
  int descriptor_ = -1;
};

}  // namespace keel
