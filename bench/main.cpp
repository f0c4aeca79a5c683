// keel_bench: every benchmark, on one device, as a table and as JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "../core/version.h"
#include "bench.h"

int main(int argc, char** argv) {
  CLI::App app("Verify, then time. Every row stands beside rooflines measured in the same run.");
  std::string device_name = "auto", json_path;
  std::vector<std::string> only;
  int threads = 0;
  app.add_option("--device", device_name, "auto, cpu, cuda or cuda:N");
  app.add_option("--threads", threads, "CPU threads (default: all)");
  app.add_option("--json", json_path, "also write the results here");
  app.add_option("--only", only, "sections, by name, separated by commas")->delimiter(',');
  keel::bench::Options options;
  app.add_flag("--quick", options.quick, "smaller inputs for gram, infinite_kernel and solve");
  app.add_flag("--large", options.large, "the Gram matrix of 40,132 inputs too: 6.5 GB");
  CLI11_PARSE(app, argc, argv);

  try {
    using namespace keel;
#ifdef _OPENMP
    if (threads > 0) omp_set_num_threads(threads);
#endif
    const Device device = Device::parse(device_name);
    fmt::print("keel {} ({}) on {}: {}\n", version(), git_commit(), device, describe(device).name);
    for (const auto& [name, value] : backends()) fmt::print("  {}: {}\n", name, value);
    const bench::Roofline roofline = bench::measure_roofline(device);
    fmt::print("  roofline of this run: copy {:.1f} GB/s, float32 GEMM {:.1f} GFLOP/s\n\n",
               roofline.copy / 1e9, roofline.gemm / 1e9);

    bench::Report report(device, roofline);
    const std::pair<const char*, std::function<void()>> sections[] = {
        {"layer_norm", [&] { bench::bench_layer_norm(report, device); }},
        {"training_step", [&] { bench::bench_training_step(report, device); }},
        {"gram", [&] { bench::bench_gram(report, device, options); }},
        {"infinite_kernel", [&] { bench::bench_infinite_kernel(report, device, options); }},
        {"solve", [&] { bench::bench_solve(report, device, options); }},
        {"protein", [&] { bench::bench_protein(report, device); }},
        {"figure1", [&] { bench::bench_figure1(report, device); }}};
    std::string names;
    for (const auto& [name, run] : sections) names += fmt::format(" {}", name);
    for (const std::string& wanted : only)
      check(std::any_of(std::begin(sections), std::end(sections),
                        [&](const auto& section) { return wanted == section.first; }),
            "bench", "got --only {}, wanted some of:{}", wanted, names);
    for (const auto& [name, run] : sections)
      if (only.empty() || std::find(only.begin(), only.end(), name) != only.end()) run();

    if (json_path.empty()) return 0;
    nlohmann::json all = report.json();
    all["version"] = version();
    all["commit"] = git_commit();
    for (const auto& [name, value] : backends()) all["backends"][name] = value;
    std::ofstream file(json_path);
    file << all.dump(2) << '\n';
    check(file.good(), "bench", "cannot write {}", json_path);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "keel_bench: {}\n", problem.what());
    return 1;
  }
}
