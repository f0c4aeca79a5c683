#include "peer.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace keel::bench {

std::optional<nlohmann::json> run_peer(const std::string& script, const std::string& arguments) {
  namespace fs = std::filesystem;
  const fs::path here = fs::path(KEEL_SOURCE_DIR) / "bench/peers";
  const fs::path python = here / ".venv/bin/python";
  if (!fs::exists(python)) return {};
  const std::string command =
      fmt::format("'{}' '{}' {} 2>/dev/null", python.string(), (here / script).string(), arguments);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return {};
  std::string last, line;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n')
      line += static_cast<char>(c);
    else
      last = std::exchange(line, {});
  }
  if (pclose(pipe) != 0) return {};
  nlohmann::json result = nlohmann::json::parse(last, nullptr, false);
  if (!result.is_object()) return {};
  return result;
}

}  // namespace keel::bench
