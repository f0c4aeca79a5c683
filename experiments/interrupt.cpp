#include "interrupt.h"

#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <string_view>

namespace keel {
namespace {

bool on_terminal = false;
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

// Nothing but write(2) may be called.
void on_signal_without_interrupt(int signal) {
  const auto say = [](std::string_view text) {
    [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, text.data(), text.size());
  };
  if (on_terminal) say("\r\x1b[K");
  say("keel: stopped\n");
  std::raise(signal);  // SA_RESETHAND: ends the process
}

// Unless who started this process wants the signal left alone: nohup, or a script's `&`.
void handle(int signal, void (*handler)(int), int flags, struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, before);
  if (before->sa_handler == SIG_IGN) sigaction(signal, before, nullptr);
}

}  // namespace

void say_when_stopped() {
  on_terminal = isatty(STDERR_FILENO);
  struct sigaction before {};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    handle(signal, on_signal_without_interrupt, SA_RESETHAND, &before);
}

int stopped_code() { return 128 + stopped_by; }

Interrupt::Interrupt() {
  stop = false;
  handle(SIGINT, on_signal, SA_RESTART, &before_int_);
  handle(SIGTERM, on_signal, SA_RESTART, &before_term_);
  handle(SIGHUP, on_signal, SA_RESTART, &before_hup_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
}

StopFlag Interrupt::flag() const { return &stop; }

void Interrupt::check() const {
  if (stop) throw Interrupted();
}

}  // namespace keel
