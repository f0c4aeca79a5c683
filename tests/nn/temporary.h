// A file name of this test's own, removed again at its end.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

class Temporary {
 public:
  explicit Temporary(const std::string& name)
      : path_((std::filesystem::temp_directory_path() /
               ("keel_" + std::to_string(::getpid()) + "_" + name))
                  .string()) {
    std::remove(path_.c_str());
  }
  ~Temporary() { std::remove(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), bytes.size());
  }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};
