#include "interrupt.h"

#include <ctime>

#include <cstdint>
#include <utility>

namespace keel {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> stopped_by{SIGINT};
std::atomic<std::int64_t> stop_asked{0};  // when, in milliseconds
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler must not wait for a lock");

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// timeout(1) signals its child and then its whole group: one wish may come twice at once.
void on_signal(int signal) {
  constexpr std::int64_t kOneWish = 500;
  const std::int64_t now = milliseconds();
  if (!stop) {
    stop_asked = now;
    stopped_by = signal;
    stop = true;
  } else if (now - stop_asked >= kOneWish) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
  }
}

}  // namespace

int stopped_code() { return 128 + stopped_by; }

Interrupt::Interrupt() {
  stop = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const auto& [signal, before] : {std::pair{SIGINT, &before_int_}, {SIGTERM, &before_term_}}) {
    sigaction(signal, &action, before);
    // nohup, or a script's `&`: who started this wants it left alone.
    if (before->sa_handler == SIG_IGN) sigaction(signal, before, nullptr);
  }
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

const std::atomic<bool>* Interrupt::flag() const { return &stop; }

void Interrupt::check() const {
  if (stop) throw Interrupted();
}

}  // namespace keel
