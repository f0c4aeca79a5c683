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

namespace keel::bench {

struct Timing {
  double median = 0, fastest = 0, slowest = 0;  // seconds
};

/// Repeats f for at least `seconds` and 7 times; waits for the device before reading the clock.
inline Timing measure(Device device, const std::function<void()>& f, double seconds = 0.5) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  for (int warm_up = 0; warm_up < 3; ++warm_up) f();
  synchronize(device);
  std::vector<double> times;
  for (const auto start = Clock::now(); elapsed(start) < seconds || times.size() < 7;) {
    const auto begin = Clock::now();
    f();
    synchronize(device);
    times.push_back(elapsed(begin));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
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

/// Sections, one per file. Each verifies what it is about to time and throws where that fails.
void bench_layer_norm(Report& report, Device device);
void bench_training_step(Report& report, Device device);
void bench_figure1(Report& report, Device device);
Roofline measure_roofline(Device device);

}  // namespace keel::bench
