// Ctrl-C as a wish rather than an end.
#pragma once

#include <csignal>

#include <stdexcept>

#include "../core/work_progress.h"

namespace keel {

/// What a command returns that Ctrl-C (130), SIGTERM (143) or the end of its terminal (SIGHUP, 129)
/// stopped: what a shell reports for one that it killed.
int stopped_code();

/// Thrown where a wish to stop ends work of which nothing can be kept.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("stopped") {}
};

/// From now on Ctrl-C (SIGTERM, SIGHUP) wipes a progress bar's line and says that keel was stopped,
/// and then ends the process as it would have. For work that has no Interrupt.
void say_when_stopped();

/// While it lives, the first Ctrl-C (SIGTERM, SIGHUP) raises a flag; another one, half a second
/// later or more, ends the process.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  StopFlag flag() const;
  void check() const;  ///< throws Interrupted where the flag is raised

 private:
  struct sigaction before_int_ {
  }, before_term_{}, before_hup_{};
};

}  // namespace keel
