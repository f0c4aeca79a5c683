// What a terminal shows while work goes on: a bar, or a line that says what is being done.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keel {

/// "fig1  [=======             ]  35%  1:05 left". `fraction` in [0, 1]; no time where
/// `seconds_left` is not finite.
std::string progress_line(std::string_view label, double fraction, double seconds_left);

/// Draws on stderr once the work has taken a second, at most ten times a second, and wipes itself
/// when it goes. Draws nothing where `shown` is false or stderr is no terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, std::int64_t total, bool shown);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` of the total is done; what the first call reports was done before (a resumed training).
  /// Cheap enough for every step of a loop.
  void update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  std::int64_t total_, first_ = -1;
  bool shown_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

/// A bar for work in stages, each with a bar of its own.
class StageBar {
 public:
  explicit StageBar(bool shown) : shown_(shown) {}

  /// `done`, from 0 to 1, of the stage that `label` names.
  void update(std::string_view label, double done);

 private:
  bool shown_;
  std::string label_;
  std::optional<ProgressBar> bar_;
};

/// One line on stderr that each call replaces, and that wipes itself when it goes. Draws nothing
/// where `shown` is false or stderr is no terminal.
class StatusLine {
 public:
  explicit StatusLine(bool shown);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);

 private:
  bool shown_, drawn_ = false;
};

}  // namespace keel
