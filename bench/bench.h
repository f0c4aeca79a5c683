// Timing: verify first, then warm up, then take the median and the spread of many repetitions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../core/device.h"
#include "../core/threads.h"

namespace keel::bench {

struct Timing {
  double median = 0, fastest = 0, slowest = 0;  // seconds
};

inline Timing summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

/// Repeats f for at least `seconds` and `repeats` times, after up to three times unmeasured; waits
/// for the device before reading the clock. `prepare` runs before each, unmeasured too.
inline Timing measure(
    Device device, const std::function<void()>& f, double seconds = 0.5, std::size_t repeats = 7,
    const std::function<void()>& prepare = [] {}) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  for (std::size_t warm_up = 0; warm_up < std::min<std::size_t>(3, repeats / 2); ++warm_up) {
    prepare();
    f();
  }
  std::vector<double> times;
  for (const auto start = Clock::now(); elapsed(start) < seconds || times.size() < repeats;) {
    prepare();
    synchronize(device);
    const auto begin = Clock::now();
    f();
    synchronize(device);
    times.push_back(elapsed(begin));
  }
  return summary(times);
}

/// A row of the report. `bytes` and `flop` say what one repetition moves and computes, at least.
struct Row {
  std::string name;
  Timing time;
  double bytes = 0, flop = 0;
  std::string note = {};  ///< a ratio, with what it is a ratio to
};

/// What the machine can do, measured in the same run: every row is shown against it.
struct Roofline {
  double copy = 0;  ///< bytes a second, read plus written
  double gemm = 0;  ///< float32 operations a second
};

class Report {
 public:
  Report(Device device, Roofline roofline) : device_(device), roofline_(roofline) {
    fmt::print("{:<46} {:>10} {:>17} {:>10} {:>10} {:>6}\n", "", "median", "fastest..slowest",
               "GB/s", "GFLOP/s", "roof");
  }

  void add(const Row& row) {
    const double t = row.time.median;
    // The roof is what would take longer: moving the bytes or doing the arithmetic.
    const double least = std::max(row.bytes / roofline_.copy, row.flop / roofline_.gemm);
    fmt::print("{:<46} {:>10} {:>8}..{:>7} {:>10} {:>10} {:>6} {}\n", row.name, duration(t),
               duration(row.time.fastest), duration(row.time.slowest), rate(row.bytes / t),
               rate(row.flop / t), least > 0 ? fmt::format("{:.0f}%", 100 * least / t) : "",
               row.note);
    rows_.push_back({{"name", row.name},
                     {"median_s", t},
                     {"fastest_s", row.time.fastest},
                     {"slowest_s", row.time.slowest},
                     {"bytes", row.bytes},
                     {"flop", row.flop},
                     {"roofline_fraction", least / t},
                     {"note", row.note}});
  }

  nlohmann::json json() const {
    return {{"device", describe(device_).name},
            {"copy_bytes_per_s", roofline_.copy},
            {"gemm_float32_flop_per_s", roofline_.gemm},
            {"rows", rows_}};
  }

 private:
  static std::string duration(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.1f}us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.2f}ms", seconds * 1e3);
    return fmt::format("{:.2f}s", seconds);
  }
  static std::string rate(double per_second) {
    return per_second > 0 ? fmt::format("{:.1f}", per_second / 1e9) : "";
  }

  Device device_;
  Roofline roofline_;
  nlohmann::json rows_ = nlohmann::json::array();
};

struct Options {
  bool quick = false;  ///< smaller inputs: does it all run?
  bool large = false;  ///< what needs more than 6.5 GB as well
};

/// Sections, one per file. Each verifies what it is about to time and throws where that fails.
void bench_layer_norm(Report& report, Device device);
void bench_training_step(Report& report, Device device);
void bench_figure1(Report& report, Device device);
void bench_protein(Report& report, Device device);
void bench_gram(Report& report, Device device, const Options& options);
void bench_infinite_kernel(Report& report, Device device, const Options& options);
void bench_solve(Report& report, Device device, const Options& options);
Roofline measure_roofline(Device device);

}  // namespace keel::bench
