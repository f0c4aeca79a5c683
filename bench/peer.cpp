#include "peer.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "../core/memory.h"
#include "source_folder.h"

namespace keel::bench {
namespace {

int seconds_of_a_peer = 600;

// What runs the scripts; nothing: no Python that could.
struct Pythons {
  std::optional<std::string> usual, neural_tangents;
} pythons;

std::filesystem::path peers_folder() { return source_folder() / "bench/peers"; }

// The one that is asked for, that of setup.sh, or on a GPU, whose machines have one ready, python3
// of the PATH if it has any of these modules.
std::optional<std::string> find_python(Device device, const char* asked_by, const char* folder,
                                       const char* modules) {
  const auto there = [](const std::string& python) {
    return python.find('/') == std::string::npos || std::filesystem::exists(python);
  };
  if (const char* asked = std::getenv(asked_by); asked && *asked)
    return there(asked) ? std::optional<std::string>(asked) : std::nullopt;
  const std::string made = (peers_folder() / folder / "bin/python").string();
  if (there(made)) return made;
  const std::string looks = fmt::format(
      "python3 -c 'import importlib.util, sys; "
      "sys.exit(not any(map(importlib.util.find_spec, sys.argv[1:])))' {} >/dev/null 2>&1",
      modules);
  if (device.is_cuda() && std::system(looks.c_str()) == 0) return "python3";
  return {};
}

// Whether a line ends a traceback of Python's: "ValueError: ...", "torch._dynamo.exc.Unsupported:
// ...".
bool names_exception(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) ||
                               line[end] == '_' || line[end] == '.'))
    ++end;
  const std::string_view name = line.substr(0, end);
  for (const char* kind : {"Error", "Exception", "Exit", "Interrupt"})
    if (name.ends_with(kind)) return true;
  const std::size_t last = name.rfind('.') + 1;  // 0: no module's
  return last > 0 && last < end && std::isupper(static_cast<unsigned char>(name[last])) &&
         line.substr(end).starts_with(":");
}

// Everything that the command writes, line by line: libraries log after the result, too. What it
// says after its latest result is why it ended, where it did not end well: the last exception, as
// advice follows it ("Set TORCHDYNAMO_VERBOSE=1 ..."), else the last line.
PeerOutput last_object(FILE* pipe) {
  PeerOutput output;
  std::string line;
  bool raised = false;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    const bool raises = names_exception(line);
    if (parsed.is_object()) {
      output = {std::move(parsed), ""};
      raised = false;
    } else if (!line.empty() && (raises || !raised)) {
      output.problem = line;
      raised = raises;
    }
    line.clear();
  }
  return output;
}

}  // namespace

void set_up_peers(Device device, int seconds) {
  seconds_of_a_peer = seconds;
  if (seconds == 0) return;
  pythons.usual = find_python(device, "KEEL_PEERS_PYTHON", ".venv", "torch jax");
  pythons.neural_tangents =
      find_python(device, "KEEL_PEERS_NT_PYTHON", ".venv-nt", "neural_tangents");
  const std::string none = "none, see bench/peers/README.md";
  fmt::print(stderr, "keel_bench: the peers' Python: {}; neural-tangents': {}\n",
             pythons.usual.value_or(none), pythons.neural_tangents.value_or(none));
}

PeerOutput run_peer(Device device, const std::string& script, const std::string& arguments) {
  if (seconds_of_a_peer == 0) return {{}, "--no-peers"};
  if (device.is_cuda() && device.index() > 0) return {{}, "peers run on the first GPU"};
  const auto& python = script.ends_with("_nt.py") ? pythons.neural_tangents : pythons.usual;
  if (!python) return {{}, "no Python: see bench/peers/setup.sh"};
  trim_memory(device);  // theirs to use
  const std::string command =
      fmt::format("timeout -k 5 {} '{}' '{}' --device {} --threads {} {} 2>&1", seconds_of_a_peer,
                  *python, (peers_folder() / script).string(), device.is_cuda() ? "cuda" : "cpu",
                  thread_count(), arguments);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return {{}, "cannot start it"};
  PeerOutput output = last_object(pipe);
  const int status = pclose(pipe);
  if (status != 0) {
    // What it had told of is worth having: of several cases, or all, if it broke on its way out.
    if (!output.result.contains("cases") && !output.result.contains("seconds")) output.result = {};
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (output.problem.empty()) output.problem = fmt::format("it ended with status {}", code);
    if (code == 124) output.problem = fmt::format("not done after {} s", seconds_of_a_peer);
    if (code == 137)
      output.problem = fmt::format("killed: out of memory, or deaf after {} s", seconds_of_a_peer);
  }
  if (output.result.is_object()) {
    if (status != 0) output.result["ended"] = output.problem;
    output.problem.clear();
  }
  return output;
}

PeerTime peer_time(const std::string& name, const PeerOutput& output, double scale,
                   const std::string& field) {
  if (!output.result.is_object()) return {name, {}, false, output.problem};
  const nlohmann::json::json_pointer at("/" + field);
  if (!output.result.contains(at)) {
    const std::string ended = output.result.value("ended", "it did not time this");
    return {name, {}, false, output.result.value(at.parent_pointer() / "problem", ended)};
  }
  const bool scaled = scale != 1 || output.result.contains("scaled_from");
  nlohmann::json about = output.result;
  for (const char* other_rows : {"cases", "gpu_cases"}) about.erase(other_rows);
  PeerTime time{name, scale * output.result[at].get<double>(), scaled, {}, std::move(about)};
  const nlohmann::json::json_pointer by_gpu("/gpu_" + field);
  if (output.result.contains(by_gpu))
    time.gpu_seconds = scale * output.result[by_gpu].get<double>();
  return time;
}

PeerTime peer_time(const std::string& name, Device device, const std::string& script,
                   const std::string& arguments, double scale) {
  return peer_time(name, run_peer(device, script, arguments), scale);
}

void add_training_peer(Report& report, const std::string& row, const std::string& name,
                       Device device, const std::string& script, const std::string& arguments) {
  const PeerOutput output = run_peer(device, script, arguments);
  report.add_peers(row, {peer_time(name, output)});
  if (device.is_cuda())
    report.add_peers(row, {peer_time(name + ", CUDA graph", output, 1, "graph/seconds")});
}

}  // namespace keel::bench
