#include "peer.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>

namespace keel::bench {

std::optional<nlohmann::json> run_peer(const std::string& script, const std::string& arguments,
                                       const std::string& environment) {
  namespace fs = std::filesystem;
  const fs::path here = fs::path(KEEL_SOURCE_DIR) / "bench/peers";
  const fs::path python = here / environment / "bin/python";
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

std::string beside_peer(const std::string& name, double seconds, const std::string& script,
                        const std::string& arguments, double scale) {
  const auto peer = run_peer(script, arguments, script.ends_with("_nt.py") ? ".venv-nt" : ".venv");
  if (!peer) return name + " not measured";
  const double theirs = scale * (*peer)["seconds"].get<double>();
  return fmt::format("{} {:.2g} s{}: {:.1f} x", name, theirs, scale != 1 ? " (scaled)" : "",
                     theirs / seconds);
}

}  // namespace keel::bench
