#include "output.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "../core/error.h"

namespace keel {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
}

void write_files(const std::vector<std::pair<fs::path, std::string>>& files) {
  std::vector<std::unique_ptr<OutputFile>> written;
  for (const auto& [path, content] : files) {
    written.push_back(std::make_unique<OutputFile>(path));
    written.back()->write(content);
  }
  for (const auto& file : written) file->commit();
}

void check_writable(const fs::path& path) { OutputFile{path}; }

void check_apart(const std::vector<std::string>& written, const std::vector<std::string>& read) {
  std::vector<fs::path> taken;
  const auto absolute = [](const std::string& path) {
    std::error_code problem;  // of what does not exist yet, a relative name would stay one
    const auto whole = fs::weakly_canonical(fs::absolute(path, problem), problem);
    return problem ? fs::path(path) : whole;
  };
  for (const std::string& path : read)
    if (!path.empty()) taken.push_back(absolute(path));
  for (const std::string& path : written) {
    if (path.empty()) continue;
    check(std::find(taken.begin(), taken.end(), absolute(path)) == taken.end(), "output",
          "got '{}' for two files, wanted a name for each", path);
    taken.push_back(absolute(path));
  }
}

OutputFolder::OutputFolder(fs::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(folder_, ignored);
  check(!fs::exists(status) || fs::is_directory(status), "output", "got '{}', wanted a folder",
        folder_.string());
  check_writable(folder_ / "summary.json");
}

void OutputFolder::write(const std::vector<std::pair<std::string, std::string>>& files) const {
  std::vector<std::pair<fs::path, std::string>> placed;
  for (const auto& [name, content] : files) placed.emplace_back(path(name), content);
  write_files(placed);
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
