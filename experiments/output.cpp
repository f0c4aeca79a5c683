#include "output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "../core/error.h"

namespace keel {

namespace fs = std::filesystem;

OutputFile::OutputFile(fs::path path) : path_(std::move(path)) {
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  std::error_code problem;
  fs::create_directories(folder, problem);
  check(!problem, "output", "got folder '{}', which cannot be made: {}", folder.string(),
        problem.message());
  // A rename would replace a device or a pipe by a file.
  const fs::file_status status = fs::status(path_, problem);
  check(!path_.filename().empty() && (!fs::exists(status) || fs::is_regular_file(status)), "output",
        "got '{}', wanted the path of a file", path_.string());
  temporary_ = folder / fmt::format(".{}.{}.tmp", path_.filename().string(), getpid());
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  check(descriptor_ >= 0, "output", "cannot write to folder '{}': {}", folder.string(),
        std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::check_written(bool holds) const {
  check(holds, "output", "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    check_written(written > 0);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  check_written(fsync(descriptor_) == 0);
  const int descriptor = std::exchange(descriptor_, -1);
  check_written(close(descriptor) == 0);
  check_written(std::rename(temporary_.c_str(), path_.c_str()) == 0);
  temporary_.clear();
}

void write_file(const fs::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
}

void check_writable(const fs::path& path) { OutputFile{path}; }

OutputFolder::OutputFolder(fs::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(folder_, ignored);
  check(!fs::exists(status) || fs::is_directory(status), "output", "got '{}', wanted a folder",
        folder_.string());
  check_writable(folder_ / "summary.json");
}

namespace {

template <class T>
std::string shortest_text(T value) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, value);
  return std::string(text, result.ptr);
}

}  // namespace

std::string shortest(double value) { return shortest_text(value); }
std::string shortest(float value) { return shortest_text(value); }

Csv::Csv(std::vector<std::string> header) : columns_(header.size()) {
  for (const std::string& name : header) add(name);
  end_row();
}

Csv& Csv::add(std::string_view text) {
  if (added_++ > 0) text_ += ',';
  if (text.find_first_of(",\"\r\n") == text.npos) {
    text_ += text;
    return *this;
  }
  text_ += '"';
  for (char c : text) text_ += c == '"' ? "\"\"" : std::string(1, c);
  text_ += '"';
  return *this;
}

void Csv::end_row() {
  check(added_ == columns_, "csv", "got {} fields in a row, wanted {}", added_, columns_);
  text_ += '\n';
  added_ = 0;
}

}  // namespace keel
