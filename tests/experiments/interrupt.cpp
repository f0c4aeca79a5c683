#include "../../experiments/interrupt.h"

#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("interrupt: one wish sent twice raises the flag, and what was there before comes back") {
  for (const int signal : {SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    struct sigaction before {
    }, after{};
    sigaction(signal, nullptr, &before);
    {
      const Interrupt interrupt;
      CHECK_FALSE(interrupt.flag()->load());
      std::raise(signal);
      std::raise(signal);
      CHECK(interrupt.flag()->load());
      CHECK(stopped_code() == 128 + signal);  // as a shell has it of one that the signal ended
    }
    CHECK_FALSE(Interrupt().flag()->load());
    sigaction(signal, nullptr, &after);
    CHECK((after.sa_handler == before.sa_handler));  // doctest cannot print them
  }
}

TEST_CASE("interrupt: who was started to ignore a signal goes on ignoring it") {
  const auto doctests = std::signal(SIGTERM, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(SIGTERM);
    CHECK_FALSE(interrupt.flag()->load());
  }
  CHECK((std::signal(SIGTERM, doctests) == SIG_IGN));
}

TEST_CASE("interrupt: a second wish ends the process") {
  const pid_t child = fork();
  if (child == 0) {
    const Interrupt interrupt;
    std::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    std::raise(SIGINT);
    _exit(0);  // not reached
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

}  // namespace
}  // namespace keel
