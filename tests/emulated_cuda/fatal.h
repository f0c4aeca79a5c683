// What ends the process that does it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

/// Does f in a process of its own. Whether a signal ended that, and what it said.
struct Death {
  bool died = false;
  std::string words;
};

template <class F>
Death death_of(F f) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGABRT}) ::signal(signal, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    f();
    _exit(0);
  }
  close(ends[1]);
  Death death;
  char some[256];
  for (ssize_t n; (n = read(ends[0], some, sizeof some)) > 0;)
    death.words.append(some, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  death.died = WIFSIGNALED(status);
  return death;
}

template <class F>
bool is_fatal(F f) {
  return death_of(f).died;
}
