// keel_bench: every benchmark, on one device, as a table and as JSON.
#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <functional>

#include "../core/output_file.h"
#include "../core/start_again.h"
#include "../core/version.h"
#include "bench.h"
#include "peer.h"

namespace {

using namespace keel;

struct Arguments {
  std::string device = "auto", json_path, results;
  std::vector<std::string> only;
  int threads = 0, peer_seconds = 600;
  bool no_peers = false;
  bench::Options options;
};

struct Section {
  const char* name;
  std::function<void()> run;
};

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--device", arguments.device, "auto, cpu, cuda or cuda:N");
  app.add_option("--threads", arguments.threads, "CPU threads (default: all)");
  auto* json = app.add_option("--json", arguments.json_path, "also write the results here");
  app.add_option("--results", arguments.results,
                 "also write them into this folder, as <device>-<date>.json, never over a file")
      ->excludes(json);
  app.add_option("--only", arguments.only, "sections, by name, separated by commas")
      ->delimiter(',');
  auto* seconds = app.add_option("--peer-seconds", arguments.peer_seconds,
                                 "what one run of another library may take (default: 600)")
                      ->check(CLI::PositiveNumber);
  app.add_flag("--no-peers", arguments.no_peers, "leave the other libraries out")
      ->excludes(seconds);
  auto* quick = app.add_flag("--quick", arguments.options.quick, "smaller inputs: minutes");
  auto* large = app.add_flag("--large", arguments.options.large,
                             "what has 40,132 inputs too: 6.5 GB and more (a GPU's are always)");
  app.add_flag("--rehearse", arguments.options.rehearse,
               "tiny inputs, once each: does it all run? Its times say nothing")
      ->excludes(quick)
      ->excludes(large);
}

std::vector<Section> choose(const std::vector<Section>& sections,
                            const std::vector<std::string>& only) {
  std::string names;
  for (const Section& section : sections) names += fmt::format(" {}", section.name);
  for (const std::string& wanted : only)
    check(std::any_of(sections.begin(), sections.end(),
                      [&](const Section& section) { return wanted == section.name; }),
          "bench", "got --only {}, wanted some of:{}", wanted, names);
  std::vector<Section> chosen;
  for (const Section& section : sections)
    if (only.empty() || std::find(only.begin(), only.end(), section.name) != only.end())
      chosen.push_back(section);
  return chosen;
}

nlohmann::json with_origin(nlohmann::json all, const std::string& date, const std::string& command,
                           bool complete) {
  all["version"] = version();
  all["commit"] = git_commit();
  all["date"] = date;
  all["command"] = command;
  all["complete"] = complete;
  for (const auto& [name, value] : backends()) all["backends"][name] = value;
  return all;
}

void write(const std::string& path, const nlohmann::json& all) {
  OutputFile file(path);
  // What a peer printed need not be UTF-8, and must not cost the rest of the report.
  file.write(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  file.commit();
}

int run(const Arguments& arguments, const std::string& command) {
  const ThreadLimit limit(arguments.threads);
  const Device device = Device::parse(arguments.device);
  bench::Options options = arguments.options;
  if (device.is_cuda() && !options.quick && !options.rehearse) options.large = true;  // seconds
  bench::set_up_peers(device, arguments.no_peers ? 0 : arguments.peer_seconds);
  const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  std::string path = arguments.json_path;
  if (!arguments.results.empty()) path = bench::result_path(arguments.results, device, date);
  if (!path.empty()) OutputFile{path};  // throws now rather than at the end

  if (options.rehearse) bench::measure_once();
  std::optional<bench::Report> report;
  const std::vector<Section> sections =
      choose({{"layer_norm", [&] { bench::bench_layer_norm(*report, device, options); }},
              {"activation", [&] { bench::bench_activation(*report, device, options); }},
              {"adam", [&] { bench::bench_adam(*report, device, options); }},
              {"training_step", [&] { bench::bench_training_step(*report, device, options); }},
              {"transformer", [&] { bench::bench_transformer(*report, device, options); }},
              {"gram", [&] { bench::bench_gram(*report, device, options); }},
              {"infinite_kernel", [&] { bench::bench_infinite_kernel(*report, device, options); }},
              {"solve", [&] { bench::bench_solve(*report, device, options); }},
              {"protein", [&] { bench::bench_protein(*report, device, options); }},
              {"figure1", [&] { bench::bench_figure1(*report, device, options); }}},
             arguments.only);

  fmt::print("keel {} ({}) on {}: {}\n", version(), git_commit(), device, describe(device).name);
  for (const auto& [name, value] : backends()) fmt::print("  {}: {}\n", name, value);
  const bench::Roofline roofline = bench::measure_roofline(device, options);
  fmt::print(
      "  roofline of this run: copy {:.1f} GB/s; GEMM, GFLOP/s: float32 {:.1f}, {}float64 "
      "{:.1f}\n\n",
      roofline.copy / 1e9, roofline.float32 / 1e9,
      roofline.tf32 ? fmt::format("TF32 {:.1f}, ", *roofline.tf32 / 1e9) : "",
      roofline.float64 / 1e9);
  if (options.rehearse) fmt::print("  a rehearsal: these times say nothing\n\n");
  const auto keep = [&](const bench::Report& so_far, bool complete) {
    nlohmann::json all = with_origin(so_far.json(), date, command, complete);
    all["rehearsal"] = options.rehearse;
    if (!path.empty()) write(path, all);
  };
  report.emplace(device, roofline, [&](const bench::Report& so_far) { keep(so_far, false); });
  report->print_header();
  for (const Section& section : sections) {
    report->run_section(section.name, section.run);
    // Most of a GPU's run is its peers', and who cuts it off has all of keel's rows by then. A CPU
    // takes an hour, in which the speed of a shared one changes: peers stay near their rows.
    if (device.is_cpu()) report->run_peers();
  }
  report->run_peers();
  keep(*report, true);
  if (!path.empty()) fmt::print("\nwritten to {}\n", path);
  return report->failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  start_again_with(argv, better_blas_kernels());
  CLI::App app("Verify, then time. Every row stands beside rooflines measured in the same run.");
  Arguments arguments;
  declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    std::string command = "keel_bench";
    for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
    return run(arguments, command);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "keel_bench: {}\n", problem.what());
    return 1;
  }
}
