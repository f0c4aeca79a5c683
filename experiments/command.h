// What a command of `keel` is, and what it is given to run with.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "../core/device.h"
#include "../core/error.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace keel {

using Json = nlohmann::ordered_json;

/// Options that make no sense: exit code 2 rather than 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// What every command takes.
struct CommonOptions {
  std::string device = "auto";
  int threads = 0;  ///< 0: as many as the machine, or OMP_NUM_THREADS, offers
  std::string out;  ///< empty: the command's own default
  std::uint64_t seed = 0;
  bool quiet = false, json = false;
};

/// One run of one command.
struct Context {
  std::string command_line;
  CommonOptions options;
  Device device;
  std::ostream& out;  ///< results, for people or (--json) machines
  std::ostream& err;  ///< notes and warnings
  std::chrono::steady_clock::time_point started;
  std::string date;  ///< of the start, UTC, ISO 8601

  void note(std::string_view line) const;  ///< a line on err, unless --quiet; nothing of ""
  bool shows_progress() const { return !options.quiet && !options.json; }  ///< to a person
};

/// Runs the command and returns the exit code.
using Run = std::function<int(Context&)>;

struct Command {
  const char* name;
  const char* summary;
  Run (*declare)(CLI::App& app);  ///< adds the command's own options; Run is called after parsing
};

/// Every command, in the order in which help lists them.
const std::vector<Command>& commands();

Run declare_certify(CLI::App& app);
Run declare_forecast(CLI::App& app);
Run declare_info(CLI::App& app);
Run declare_ntk(CLI::App& app);
Run declare_predict(CLI::App& app);
Run declare_regress(CLI::App& app);
Run declare_reproduce(CLI::App& app);
Run declare_train(CLI::App& app);

/// --ignore: columns of --data, and of --test, that are left out.
void declare_ignore(CLI::App& app, std::vector<std::string>& columns);

/// Checks of an option's text for CLI11: a finite number more than 0, or of at least 0. Empty where
/// it is one, else what is wrong.
std::string check_positive(const std::string& text);
std::string check_not_negative(const std::string& text);

/// One of a whole number from `low` to `high`.
std::function<std::string(const std::string& text)> check_whole(std::int64_t low,
                                                                std::int64_t high);

/// A check for one of `names`, which help lists.
CLI::Validator one_of(const std::vector<std::string>& names);

/// The part of summary.json that all commands share: what ran, when, where, with what, for how
/// long; then the members of `numbers`. Numbers that are not finite become null.
Json summarise(const Context& context, const Json& numbers);

/// As it goes to a file or a terminal. Bytes of a path that are no UTF-8 are replaced, not refused.
std::string json_text(const Json& json);

}  // namespace keel
