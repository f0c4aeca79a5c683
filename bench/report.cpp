// The table for people and the same rows as JSON.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bench.h"

namespace keel::bench {
namespace {

bool only_once = false;

// Seconds of queued calls that make a repetition on a GPU: launching the first and waking up after
// the last take 10 to 15 us, which is too much of a single millisecond.
constexpr double kSample = 10e-3;

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f}us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f}ms", seconds * 1e3);
  return fmt::format("{:.2f}s", seconds);
}

std::string rate(double per_second) {
  return per_second > 0 ? fmt::format("{:.1f}", per_second / 1e9) : "";
}

// What a row takes by the host's clock and by a GPU's own: a peer is held against it clock by
// clock.
struct Clocks {
  double host;
  std::optional<double> gpu;
};

std::string words(const PeerTime& peer, const Clocks& ours) {
  if (!peer.seconds) return fmt::format("{} not measured ({})", peer.name, peer.problem);
  std::string all = fmt::format("{} {}{}: {:.2f} x", peer.name, duration(*peer.seconds),
                                peer.scaled ? " (scaled)" : "", *peer.seconds / ours.host);
  if (peer.gpu_seconds && ours.gpu)
    all += fmt::format(" (by the GPU's clock {}: {:.2f} x)", duration(*peer.gpu_seconds),
                       *peer.gpu_seconds / *ours.gpu);
  return all;
}

std::string words(const std::vector<PeerTime>& peers, const Clocks& ours) {
  std::string all;
  for (const PeerTime& peer : peers) all += (all.empty() ? "" : ", ") + words(peer, ours);
  return all;
}

nlohmann::json json_of(const PeerTime& peer, const Clocks& ours) {
  nlohmann::json result = {{"name", peer.name}, {"seconds", nullptr}, {"ratio", nullptr}};
  if (!peer.about.empty()) result["about"] = peer.about;
  if (!peer.seconds) {
    result["problem"] = peer.problem;
    return result;
  }
  result["seconds"] = *peer.seconds;
  result["ratio"] = *peer.seconds / ours.host;
  result["scaled"] = peer.scaled;
  if (peer.gpu_seconds) {
    result["gpu_seconds"] = *peer.gpu_seconds;
    if (ours.gpu) result["gpu_ratio"] = *peer.gpu_seconds / *ours.gpu;
  }
  return result;
}

const char* name_of(Roof roof) {
  return roof == Roof::float32 ? "gemm_float32" : roof == Roof::tf32 ? "gemm_tf32" : "gemm_float64";
}

// Of the last minute: whether the machine was quiet enough for the times to count.
nlohmann::json load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? nlohmann::json(load) : nlohmann::json(nullptr);
}

// Whether threads spin or sleep between two operations: peers of many short ones depend on it.
nlohmann::json wait_policy() {
  const char* chosen = std::getenv("OMP_WAIT_POLICY");
  return chosen ? nlohmann::json(chosen) : nlohmann::json(nullptr);
}

nlohmann::json or_null(std::optional<double> value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

Timing summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

void measure_once() { only_once = true; }
bool measures_once() { return only_once; }

Timing measure(Device device, const std::function<void()>& f, double seconds, std::size_t repeats,
               const std::function<void()>& prepare) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  std::size_t calls = 1;
  const auto repetition = [&] {
    if (prepare) prepare();
    synchronize(device);
    const auto begin = Clock::now();
    for (std::size_t call = 0; call < calls; ++call) f();
    synchronize(device);
    return elapsed(begin) / static_cast<double>(calls);
  };
  if (only_once) return summary({repetition()});
  double last = 0;
  for (std::size_t warm_up = 0; warm_up < std::min<std::size_t>(3, repeats / 2); ++warm_up)
    last = repetition();
  if (device.is_cuda() && !prepare && last > 0)
    calls = static_cast<std::size_t>(std::max(1.0, kSample / last));
  std::vector<double> times;
  for (const auto start = Clock::now(); elapsed(start) < seconds || times.size() < repeats;)
    times.push_back(repetition());
  return summary(times);
}

std::optional<double> Roofline::of(Roof roof) const {
  if (roof == Roof::tf32) return tf32;
  return roof == Roof::float32 ? float32 : float64;
}

Report::Report(Device device, const Roofline& roofline, std::function<void(const Report&)> changed)
    : info_(describe(device)), roofline_(roofline), changed_(std::move(changed)) {}

void Report::print_header() const {
  fmt::print("{:<52} {:>10} {:>19} {:>10} {:>10} {:>6}\n", "", "median", "fastest..slowest", "GB/s",
             "GFLOP/s", "roof");
}

void Report::add(const Row& row) {
  const double t = row.time.median;
  // The roof is what would take longer: moving the bytes or doing the arithmetic.
  const double moving = row.bytes / roofline_.copy;
  const double computing = row.flop > 0 ? row.flop / roofline_.of(row.roof).value() : 0;
  const double least = std::max(moving, computing);
  std::vector<std::string> notes;
  if (!row.note.empty()) notes.push_back(row.note);
  if (row.copy_fraction)
    notes.push_back(fmt::format("{:.0f}% of the copy's bandwidth", 100 * *row.copy_fraction));
  if (row.gpu_seconds)
    notes.push_back(fmt::format("{} by the GPU's clock", duration(*row.gpu_seconds)));
  const Clocks clocks{t, row.gpu_seconds};
  if (!row.peers.empty()) notes.push_back(words(row.peers, clocks));
  fmt::print("{:<52} {:>10} {:>9}..{:>8} {:>10} {:>10} {:>6} {}\n", row.name, duration(t),
             duration(row.time.fastest), duration(row.time.slowest), rate(row.bytes / t),
             rate(row.flop / t), least > 0 ? fmt::format("{:.0f}%", 100 * least / t) : "",
             fmt::join(notes, ", "));
  std::fflush(stdout);
  rows_.push_back({{"name", row.name},
                   {"median_s", t},
                   {"fastest_s", row.time.fastest},
                   {"slowest_s", row.time.slowest},
                   {"bytes", row.bytes},
                   {"flop", row.flop},
                   {"roof", nullptr},
                   {"roofline_fraction", nullptr},
                   {"note", row.note},
                   {"peers", nlohmann::json::array()}});
  for (const PeerTime& peer : row.peers) rows_.back()["peers"].push_back(json_of(peer, clocks));
  if (least > 0) {
    rows_.back()["roof"] = moving >= computing ? "copy" : name_of(row.roof);
    rows_.back()["roofline_fraction"] = least / t;
  }
  if (row.copy_fraction) rows_.back()["copy_fraction"] = *row.copy_fraction;
  if (row.gpu_seconds) rows_.back()["gpu_s"] = *row.gpu_seconds;
  changed_(*this);
}

void Report::run_section(const std::string& name, const std::function<void()>& section) {
  section_ = name;
  try {
    section();
  } catch (const std::exception& problem) {
    fmt::print(stderr, "keel_bench: {} failed: {}\n", name, problem.what());
    failures_.push_back({{"section", name}, {"what", problem.what()}});
    changed_(*this);
  }
}

void Report::later(std::function<void()> peers) {
  later_.push_back({section_, thread_count(), std::move(peers)});
}

void Report::run_peers() {
  for (const Later& each : std::exchange(later_, {})) {
    const ThreadLimit limit(each.threads);
    run_section(each.section, each.run);
  }
}

void Report::add_peers(const std::string& row, const std::vector<PeerTime>& peers) {
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const nlohmann::json& other) { return other["name"] == row; });
  check(at != rows_.end(), "bench", "peers of a row that there is not: {}", row);
  Clocks ours{(*at)["median_s"], {}};
  if (at->contains("gpu_s")) ours.gpu = (*at)["gpu_s"];
  fmt::print("{:<52} beside {}\n", row, words(peers, ours));
  std::fflush(stdout);
  for (const PeerTime& peer : peers) (*at)["peers"].push_back(json_of(peer, ours));
  changed_(*this);
}

void Report::leave_out(const std::string& name, const std::string& why) {
  fmt::print("{:<52} left out: {}\n", name, why);
  left_out_.push_back({{"name", name}, {"why", why}});
  changed_(*this);
}

nlohmann::json Report::json() const {
  return {{"device", info_.name},
          {"architecture", info_.architecture},
          {"threads", thread_count()},
          {"load_average", load_average()},
          {"omp_wait_policy", wait_policy()},
          {"copy_bytes_per_s", roofline_.copy},
          {"gemm_float32_flop_per_s", roofline_.float32},
          {"gemm_float32_as_keel_flop_per_s", roofline_.own_float32},
          {"gemm_tf32_flop_per_s", or_null(roofline_.tf32)},
          {"gemm_float64_flop_per_s", roofline_.float64},
          {"rows", rows_},
          {"left_out", left_out_},
          {"failed", failures_}};
}

std::string result_path(const std::string& folder, Device device, const std::string& date) {
  std::string name = describe(device).name;
  for (const char* mark : {"(R)", "(TM)"})
    for (std::size_t at; (at = name.find(mark)) != std::string::npos;)
      name.erase(at, std::string(mark).size());
  if (device.is_cpu()) name += fmt::format(" {} threads", thread_count());
  std::string stem;
  for (const unsigned char c : name) {
    if (std::isalnum(c))
      stem += static_cast<char>(std::tolower(c));
    else if (!stem.empty() && stem.back() != '-')
      stem += '-';
  }
  const std::string path = (std::filesystem::path(folder) / (stem + "-" + date)).string();
  std::string free = path + ".json";
  for (int n = 2; std::filesystem::exists(free); ++n) free = fmt::format("{}-{}.json", path, n);
  return free;
}

}  // namespace keel::bench
