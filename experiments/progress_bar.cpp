#include "progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace keel {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(std::string_view label, double fraction, double seconds_left) {
  constexpr int kWidth = 30;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const int filled = static_cast<int>(fraction * kWidth);
  const std::string left = std::isfinite(seconds_left) ? clock_text(seconds_left) + " left" : "";
  return fmt::format("{}  [{:{}}]  {:3.0f}%  {}", label, std::string(filled, '='), kWidth,
                     std::floor(100 * fraction), left);
}

ProgressBar::ProgressBar(std::string label, std::int64_t total, bool shown)
    : label_(std::move(label)), total_(total), shown_(shown && isatty(STDERR_FILENO)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::update(std::int64_t done) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (first_ < 0) {
    first_ = done;
    start_ = now;
  }
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  constexpr std::int64_t kTellsLittle = 50;  // less than this part of the work
  const bool early = done - first_ < (total_ - first_) / kTellsLittle || done == first_;
  const double left =
      early ? std::numeric_limits<double>::quiet_NaN()
            : static_cast<double>(total_ - done) * elapsed / static_cast<double>(done - first_);
  const double fraction =
      static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(total_, 1));
  fmt::print(stderr, "\r{}\x1b[K", progress_line(label_, fraction, left));
  std::fflush(stderr);
  drawn_ = true;
}

void StageBar::update(std::string_view label, double done) {
  constexpr std::int64_t kWhole = 1000000;
  if (!bar_ || label_ != label) {
    label_ = label;
    bar_.emplace(label_, kWhole, shown_);
  }
  bar_->update(static_cast<std::int64_t>(done * kWhole));
}

StatusLine::StatusLine(bool shown) : shown_(shown && isatty(STDERR_FILENO)) {}

StatusLine::~StatusLine() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void StatusLine::show(std::string_view text) {
  if (!shown_) return;
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace keel
