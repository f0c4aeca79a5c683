#include "plotting.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

extern char** environ;

namespace keel {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int code;            // -1 where it did not end by itself
  std::string output;  // stdout and stderr
};

Finished run_program(std::vector<std::string> arguments) {
  int ends[2];
  check(pipe(ends) == 0, "plot", "cannot make a pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int problem = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Finished finished{-1, ""};
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) finished.output.append(part, n);
  close(ends[0]);
  if (problem != 0) return finished;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  return finished;
}

// What a Python program ends with when it fails, warnings and tracebacks left out.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));  // npos + 1 is 0
}

std::optional<std::string> python_that_plots() {
  const char* path = std::getenv("PATH");
  std::string_view folders = path ? path : "";
  const std::string all = std::string(folders) + ":/usr/local/bin:/usr/bin";
  folders = all;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const fs::path python = fs::path(folders.substr(0, end)) / "python3";
    folders.remove_prefix(std::min(end + 1, folders.size()));
    if (python.has_parent_path() &&  // an empty entry would run what lies in the current folder
        access(python.c_str(), X_OK) == 0 &&
        run_program({python.string(), "-c", "import matplotlib"}).code == 0)
      return python.string();
  }
  return std::nullopt;
}

// Beside an installed command, beside build/, or where this file was compiled.
fs::path plot_script() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  const fs::path installed = here / "share/keel/plot.py", built = here / "experiments/plot.py";
  const fs::path source = fs::path(__FILE__).parent_path() / "plot.py";
  for (const fs::path& script : {installed, built, source})
    if (fs::exists(script, ignored)) return script;
  fail("plot", "found plot.py neither at '{}' nor at '{}' nor at '{}'", installed.string(),
       built.string(), source.string());
}

}  // namespace

Drawn run_plot(const std::string& figure, const fs::path& folder) {
  const fs::path script = plot_script();
  const std::optional<std::string> python = python_that_plots();
  if (!python)
    return {{},
            fmt::format("no picture: no python3 has matplotlib. Install it (Debian: apt install "
                        "python3-matplotlib), then: python3 {} {} {}",
                        script.string(), figure, folder.string())};
  const Finished finished = run_program({*python, script.string(), figure, folder.string()});
  check(finished.code == 0, "plot", "{}", last_line(finished.output));
  Drawn drawn;
  for (const char* kind : {".png", ".svg"}) {
    const fs::path picture = folder / (figure + kind);
    check(fs::exists(picture), "plot", "{} was not written", picture.string());
    drawn.pictures.push_back(picture.string());
  }
  return drawn;
}

std::string draw(const std::string& figure, const OutputFolder& folder, const Context& context,
                 Json& summary) {
  Drawn drawn;
  try {
    drawn = run_plot(figure, folder.path(""));
  } catch (const Error& problem) {
    return problem.what();
  }
  if (drawn.pictures.empty()) context.note(drawn.how_later);
  summary["pictures"] = drawn.pictures;
  folder.write("summary.json", json_text(summary));
  return "";
}

}  // namespace keel
