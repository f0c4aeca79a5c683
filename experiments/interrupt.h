// Ctrl-C as a wish rather than an end.
#pragma once

#include <csignal>

#include <atomic>

namespace keel {

/// While it lives, the first Ctrl-C (or SIGTERM) raises a flag; another one, half a second later or
/// more, ends the process.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;

 private:
  struct sigaction before_int_ {
  }, before_term_{};
};

}  // namespace keel
