#include "command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <new>
#include <optional>
#include <ostream>

#include "../core/threads.h"
#include "../core/version.h"
#include "command.h"
#include "interrupt.h"

namespace keel {
namespace {

// As a shell would need it to be typed.
std::string shell_word(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == argument.npos) return argument;
  std::string text = "'";
  for (char c : argument) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) return {};
  return value;
}

std::string check_device_name(const std::string& text) {
  int index = 0;
  const bool numbered = text.starts_with("cuda:") &&
                        std::from_chars(text.data() + 5, text.data() + text.size(), index).ptr ==
                            text.data() + text.size();
  if (text == "auto" || text == "cpu" || text == "cuda" || (numbered && text.size() > 5)) return "";
  return fmt::format("got '{}', wanted auto, cpu, cuda or cuda:N", text);
}

std::string check_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, seed);
  if (problem == std::errc() && stop == end) return "";
  return fmt::format("got '{}', wanted a whole number from 0 to 2^64 - 1", text);
}

void declare_common(CLI::App& app, CommonOptions& options) {
  const char* group = "Of every command";
  app.add_option("--device", options.device, "auto (a GPU where one is visible), cpu, cuda, cuda:N")
      ->check(check_device_name)
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", options.threads, "processor threads to use (default: all)")
      ->check(check_whole(1, 4096))
      ->group(group);
  app.add_option("--out", options.out, "folder for what the command writes")->group(group);
  app.add_option("--seed", options.seed, "first seed of the random numbers")
      ->check(check_seed)  // CLI11 takes the largest where a number is too large
      ->capture_default_str()
      ->group(group);
  app.add_flag("--quiet", options.quiet, "no progress bar, no notes, no table")->group(group);
  app.add_flag("--json", options.json, "print the summary as JSON instead of a table")
      ->group(group);
}

// A shell makes one of a variable that is not set.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        throw UsageError("usage", fmt::format("{}: got '', wanted a value", option->get_name()));
}

int parse_and_run(std::vector<std::string> arguments, std::ostream& out, std::ostream& err) {
  std::string command_line = "keel";
  for (const std::string& argument : arguments) command_line += " " + shell_word(argument);
  const auto started = std::chrono::steady_clock::now();
  const std::string date = utc_now();
  if (!arguments.empty() && arguments[0] == "help") {  // keel help train = keel train --help
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }

  CLI::App app("What does a neural network do far from its training data?", "keel");
  app.set_version_flag("--version", fmt::format("keel {} (commit {})", version(), git_commit()));
  app.require_subcommand(1);
  app.footer("keel help COMMAND shows a command's options.");
  CommonOptions options;
  std::vector<Run> runs;
  std::string names;
  for (const Command& command : commands()) {
    CLI::App& sub = *app.add_subcommand(command.name, command.summary);
    runs.push_back(command.declare(sub));
    declare_common(sub, options);
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  }
  if (arguments.empty()) {
    err << app.help();
    return 2;
  }
  const std::string first = arguments[0];
  const bool known = std::any_of(commands().begin(), commands().end(),
                                 [&](const Command& command) { return first == command.name; });
  if (!known && !first.starts_with("-"))
    throw UsageError("usage", fmt::format("got command '{}', wanted one of {}", first, names));
  const bool own = first == "--help" || first == "-h" || first == "--version";
  if (!known && !own)
    throw UsageError("usage", fmt::format("got '{}' before any command, wanted keel COMMAND "
                                          "OPTIONS; the commands are {}",
                                          first, names));
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::ExtrasError&) {
    throw UsageError("usage", fmt::format("got '{}', wanted an option of keel {}: keel help {} "
                                          "shows them",
                                          app.remaining(true).at(0), first, first));
  } catch (const CLI::ArgumentMismatch& error) {  // "--out: 1 required TEXT missing", and its like
    const std::string text = error.what();
    throw UsageError("usage", fmt::format("{}: got {}, wanted one", text.substr(0, text.find(':')),
                                          text.ends_with(" missing") ? "no value" : "several"));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, out, err);  // --help, --version
    throw UsageError("usage", error.what());
  }

  const ThreadLimit limit(options.threads);
  check(options.threads <= thread_count(), "threads",
        "got --threads {}, but this build has no OpenMP", options.threads);
  Context context{
      std::move(command_line), options, Device::parse(options.device), out, err, started, date};
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const char* name = commands()[i].name; app.got_subcommand(name)) {
      refuse_empty_values(*app.get_subcommand(name));
      return runs[i](context);
    }
  return 2;
}

}  // namespace

void declare_ignore(CLI::App& app, std::vector<std::string>& columns) {
  app.add_option("--ignore", columns,
                 "columns to leave out, which may hold anything: names or numbers, as of --target, "
                 "set apart by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B");
}

std::string check_positive(const std::string& text) {
  if (finite_number(text).value_or(0) > 0) return "";
  return fmt::format("got '{}', wanted a number more than 0", text);
}

std::string check_not_negative(const std::string& text) {
  if (finite_number(text).value_or(-1) >= 0) return "";
  return fmt::format("got '{}', wanted a number of at least 0", text);
}

std::function<std::string(const std::string&)> check_whole(std::int64_t low, std::int64_t high) {
  return [low, high](const std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem == std::errc() && stop == end && value >= low && value <= high)
      return std::string();
    return fmt::format("got '{}', wanted a whole number from {} to {}", text, low, high);
  };
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](const std::string& text) {
        if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
        return fmt::format("got '{}', wanted one of {}", text, fmt::join(names, ", "));
      },
      fmt::format("{{{}}}", fmt::join(names, ",")));
}

void Context::note(std::string_view line) const {
  if (!options.quiet && !line.empty())
    err << shown(line, kLongestMessage) << '\n';  // headers of tables are in it
}

int run_command_line(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err) {
  try {
    const int code = parse_and_run(arguments, out, err);
    out.flush();
    check(static_cast<bool>(out), "output", "cannot write to standard output");
    return code;
  } catch (const UsageError& error) {
    err << "keel: " << error.what() << '\n';
    return 2;
  } catch (const Interrupted& wish) {
    err << "keel: " << wish.what() << '\n';
    return stopped_code();
  } catch (const std::bad_alloc&) {
    err << "keel: out of memory: the system has no more for this process\n";
  } catch (const std::exception& error) {
    err << "keel: " << shown(error.what(), kLongestMessage) << '\n';
  } catch (...) {
    err << "keel: an error that is no std::exception was thrown\n";
  }
  return 1;
}

}  // namespace keel
