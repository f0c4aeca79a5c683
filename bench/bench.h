// Timing and the report: verify first, then warm up, then take the median and the spread of many
// repetitions, beside what the machine can do and what others need.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../core/tensor.h"
#include "../core/threads.h"

namespace keel::bench {

struct Timing {
  double median = 0, fastest = 0, slowest = 0;  // seconds
};

Timing summary(std::vector<double> times);

/// Repeats f for at least `seconds` and `repeats` times, after up to three times unmeasured; waits
/// for the device before reading the clock. `prepare` runs before each, unmeasured too. Without one
/// a repetition on a GPU is as many calls as take 10 ms, queued one behind another as in use, and
/// its time that of a call: bench/peers/common.py measures the same way.
Timing measure(Device device, const std::function<void()>& f, double seconds = 0.5,
               std::size_t repeats = 7, const std::function<void()>& prepare = {});

/// From now on measure() calls f once and no more: for a rehearsal, whose times nobody reads.
void measure_once();
bool measures_once();

/// Seconds that a GPU takes for f, by its own clock, calls queued one behind another; nothing on a
/// CPU. Less than measure() tells where the host is slower than short kernels. `gpu_seconds` in
/// bench/peers/torch_net.py measures the same way.
std::optional<double> by_clock_of_gpu(Device device, const std::function<void()>& f);

/// What somebody else's code needs for the same work. Without seconds: why it was not measured.
struct PeerTime {
  std::string name;
  std::optional<double> seconds;
  bool scaled = false;  ///< measured on a part of the work
  std::string problem = {};
  nlohmann::json about = {};               ///< what else it said: versions, what it computed
  std::optional<double> gpu_seconds = {};  ///< by the GPU's own clock
};

/// The arithmetic that a row's flop are held against.
enum class Roof { float32, tf32, float64 };

/// A row of the report. `bytes` and `flop` say what one repetition moves and computes, at least.
struct Row {
  std::string name;
  Timing time;
  double bytes = 0, flop = 0;
  std::string note = {};
  std::vector<PeerTime> peers = {};
  Roof roof = Roof::float32;
  std::optional<double> copy_fraction = {};  ///< of the bandwidth of a copy of the same size
  std::optional<double> gpu_seconds = {};    ///< by_clock_of_gpu()
};

/// What the machine can do, measured in the same run: every row is shown against it.
struct Roofline {
  double copy = 0;                  ///< bytes a second, read plus written
  double float32 = 0, float64 = 0;  ///< operations a second of a matrix product: the library's best
  double own_float32 = 0;           ///< as keel multiplies: on a GPU without any shortcut
  std::optional<double> tf32 = {};  ///< where the device and the build have it
  std::optional<double> of(Roof roof) const;
};

/// How much a run works on. A rehearsal has the smallest inputs that take every path, each once:
/// its rows are those of a full run, and their times mean nothing.
struct Options {
  bool quick = false;     ///< smaller inputs
  bool large = false;     ///< what has 40,132 inputs as well, or 6.5 GB
  bool rehearse = false;  ///< `large`, too, small

  std::int64_t size(std::int64_t full, std::int64_t smaller, std::int64_t smallest) const {
    return rehearse ? smallest : quick ? smaller : full;
  }
  std::int64_t size(std::int64_t full, std::int64_t smallest) const {
    return size(full, full, smallest);
  }
};

Roofline measure_roofline(Device device, const Options& options);

/// The triangle that cuSOLVER works on, which counts columns first: upper is keel's lower.
enum class Fill { upper, lower };

/// cuSOLVER alone on a symmetric float32 matrix on a GPU, both triangles set; nothing elsewhere.
std::optional<Timing> cusolver_cholesky(const Tensor& a, Fill fill, std::size_t repeats);

class Report {
 public:
  /// `changed` hears of every row: what a run has measured before it is cut off is worth keeping.
  Report(Device device, const Roofline& roofline, std::function<void(const Report&)> changed);

  const Roofline& roofline() const { return roofline_; }
  void print_header() const;
  void add(const Row& row);

  /// Runs a section. One that throws has failed, and so has the run, but the others go on.
  void run_section(const std::string& name, const std::function<void()>& section);
  bool failed() const { return !failures_.empty(); }

  /// For a section: `peers` is to run others' code and add_peers() to rows that are there by then.
  /// It waits for run_peers(), and has as many threads then as there are now.
  void later(std::function<void()> peers);
  void run_peers();
  void add_peers(const std::string& row, const std::vector<PeerTime>& peers);

  /// Work that this run does not measure, by name, and why.
  void leave_out(const std::string& name, const std::string& why);

  nlohmann::json json() const;

 private:
  struct Later {
    std::string section;
    int threads;
    std::function<void()> run;
  };

  DeviceInfo info_;  // asked for at the start: a GPU that failed says nothing any more
  Roofline roofline_;
  std::function<void(const Report&)> changed_;
  nlohmann::json rows_ = nlohmann::json::array(), left_out_ = rows_, failures_ = rows_;
  std::string section_;  // that runs
  std::vector<Later> later_;
};

/// <device>-<date>.json in `folder`, with -2, -3, ... where such files exist.
std::string result_path(const std::string& folder, Device device, const std::string& date);

/// Sections, one per file. Each verifies what it is about to time and throws where that fails.
void bench_layer_norm(Report& report, Device device, const Options& options);
void bench_activation(Report& report, Device device, const Options& options);
void bench_adam(Report& report, Device device, const Options& options);
void bench_training_step(Report& report, Device device, const Options& options);
void bench_transformer(Report& report, Device device, const Options& options);
void bench_figure1(Report& report, Device device, const Options& options);
void bench_protein(Report& report, Device device, const Options& options);
void bench_gram(Report& report, Device device, const Options& options);
void bench_infinite_kernel(Report& report, Device device, const Options& options);
void bench_solve(Report& report, Device device, const Options& options);

/// Thread counts that a section tries: one and all on the CPU; a GPU has no such choice.
inline std::vector<int> thread_choices(Device device) {
  if (device.is_cuda() || thread_count() == 1) return {thread_count()};
  return {1, thread_count()};
}

/// ", 1 thread" and the like; nothing on a GPU.
inline std::string on_threads(Device device) {
  if (device.is_cuda()) return "";
  return fmt::format(", {} thread{}", thread_count(), thread_count() == 1 ? "" : "s");
}

}  // namespace keel::bench
