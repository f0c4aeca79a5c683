// `keel ...` run in this process, and what it wrote.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../../experiments/command_line.h"
#include "../temporary_folder.h"

namespace keel {

inline constexpr const char* kNet = "dense(16) layernorm relu dense(16) relu dense(1)";
inline constexpr const char* kNoNorm = "dense(16) relu dense(16) relu dense(1)";

/// Not here: a parser is a second of every file's compilation.
nlohmann::json json_of(const std::string& path);

struct Ran {
  int code;
  std::string out, err;
};

inline Ran run_keel(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = run_command_line(arguments, out, err);
  return {code, out.str(), err.str()};
}

/// what() of the Kind that `f` throws; "nothing thrown" otherwise.
template <class Kind, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Kind& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace keel
