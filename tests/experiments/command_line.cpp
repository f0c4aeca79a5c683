#include "../../experiments/command_line.h"

#include <streambuf>

#include "../../core/device.h"
#include "../../core/version.h"
#include "../../experiments/command.h"
#include "../../experiments/progress_bar.h"
#include "../../experiments/text_table.h"
#include "helpers.h"

namespace keel {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("command line: help and version") {
  const Ran version_flag = run_keel({"--version"});
  CHECK(version_flag.code == 0);
  CHECK(version_flag.out == fmt::format("keel {} (commit {})\n", version(), git_commit()));
  for (const auto& arguments : {std::vector<std::string>{"help"}, {"--help"}}) {
    const Ran help = run_keel(arguments);
    CHECK(help.code == 0);
    for (const Command& command : commands()) CHECK(contains(help.out, command.name));
  }
  for (const Command& command : commands()) {
    CAPTURE(command.name);
    const Ran help = run_keel({"help", command.name});
    CHECK(help.code == 0);
    CHECK(help.out == run_keel({command.name, "--help"}).out);
    for (const char* option : {"--device", "--threads", "--out", "--seed", "--quiet", "--json"})
      CHECK(contains(help.out, option));
  }
}

TEST_CASE("command line: bad usage is one line and 2") {
  const auto usage = [](const std::vector<std::string>& arguments) {
    const Ran ran = run_keel(arguments);
    CHECK(ran.code == 2);
    CHECK(ran.out == "");
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    return ran.err;
  };
  CHECK(usage({"figures"}).starts_with("keel: usage: got command 'figures', wanted one of info"));
  CHECK(usage({"--threads", "1", "info"})
            .starts_with("keel: usage: got '--threads' before any command, wanted keel COMMAND"));
  CHECK(usage({"info", "--colour"}) ==
        "keel: usage: got '--colour', wanted an option of keel info: keel help info shows them\n");
  CHECK(usage({"reproduce", "fig1", "fig2", "--quick"}) ==
        "keel: usage: got 'fig2', wanted an option of keel reproduce: keel help reproduce shows "
        "them\n");
  CHECK(usage({"train", "--standardise", "z"}) ==
        "keel: usage: --standardise: got 'z', wanted one of none, x, xy\n");
  CHECK(usage({"info", "--device", "tpu"}) ==
        "keel: usage: --device: got 'tpu', wanted auto, cpu, cuda or cuda:N\n");
  CHECK(usage({"info", "--threads", "0"}).starts_with("keel: usage: --threads: "));
  CHECK(usage({"info", "--threads", "two"}).starts_with("keel: usage: "));
  for (const char* seed : {"-1", "1.5", "99999999999999999999", "x"})
    CHECK(usage({"info", "--seed", seed}) ==
          fmt::format("keel: usage: --seed: got '{}', wanted a whole number from 0 to 2^64 - 1\n",
                      seed));
  CHECK(usage({"info", "--out", "a", "--out", "b"}) ==
        "keel: usage: --out: got several, wanted one\n");
  CHECK(usage({"info", "--out"}) == "keel: usage: --out: got no value, wanted one\n");
  // What a shell makes of a variable that is not set is no choice of a default.
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"info", "--out", ""},
        {"forecast", "--weights", "", "--data", "x", "--target", "x"},
        {"train", "--save-weights", "", "--net", "x", "--data", "x", "--target", "x"}})
    CHECK(usage(given) == fmt::format("keel: usage: {}: got '', wanted a value\n", given[1]));
  CHECK(usage({"--quiet"}).starts_with("keel: usage: "));
  const Ran nothing = run_keel({});
  CHECK(nothing.code == 2);
  CHECK(contains(nothing.err, "info"));
}

TEST_CASE("command line: a device that is not there is an error, not the CPU") {
  if (cuda_device_count() > 0) return;
  const Ran ran = run_keel({"info", "--device", "cuda"});
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: device: got cuda:0, but " + why_no_cuda() + "\n");
}

TEST_CASE("command line: output that cannot be written is an error") {
  struct Full : std::streambuf {
  } full;  // accepts nothing
  std::ostream out(&full);
  std::ostringstream err;
  CHECK(run_command_line({"info"}, out, err) == 1);
  CHECK(err.str() == "keel: output: cannot write to standard output\n");
}

TEST_CASE("info: for people and for machines") {
  const Ran people = run_keel({"info"});
  CHECK(people.code == 0);
  CHECK(contains(people.out, "architecture"));
  CHECK(contains(people.out, describe(Device::cpu()).name));
  CHECK(contains(people.out, "BLAS"));
  if (cuda_device_count() == 0) CHECK(contains(people.out, "no GPU: " + why_no_cuda()));

  const TemporaryFolder folder;
  const std::string out = folder / "a folder";
  const Ran machines =
      run_keel({"info", "--json", "--out", out, "--threads", "1", "--device", "cpu"});
  CHECK(machines.code == 0);
  const auto summary = nlohmann::json::parse(machines.out);
  CHECK(summary == json_of(out + "/summary.json"));
  CHECK(summary["command"] == "keel info --json --out '" + out + "' --threads 1 --device cpu");
  CHECK(summary["version"] == version());
  CHECK(summary["commit"] == git_commit());
  CHECK(summary["device"] == "cpu");
  CHECK(summary["threads"] == 1);
  CHECK(summary["seconds"].get<double>() >= 0);
  CHECK(summary["date"].get<std::string>().size() == 20);
  CHECK(summary["devices"][0]["total_bytes"].get<std::size_t>() > 0);
  CHECK(summary["cuda"]["devices"] == cuda_device_count());
  CHECK(summary["backends"].contains("compiler"));

  CHECK(run_keel({"info", "--json", "--out", folder / "caf\xe9"}).code == 0);  // no UTF-8

  const Ran quiet = run_keel({"info", "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out + quiet.err == "");
}

TEST_CASE("progress: the line, and silence where there is no terminal") {
  CHECK(progress_line("fig1", 0, std::nan("")) == "fig1  [                              ]    0%  ");
  CHECK(progress_line("fig1", 0.5, 64.2) ==
        "fig1  [===============               ]   50%  1:05 left");
  CHECK(progress_line("fig1", 0.25, 10800) ==
        "fig1  [=======                       ]   25%  3:00:00 left");
  CHECK(progress_line("fig1", 2, 0) == "fig1  [==============================]  100%  0:00 left");
}

TEST_CASE("brief_outward: what is printed of a bound is one") {
  CHECK(brief_outward(7.8954147, 5, 1) == "7.8955");
  CHECK(brief_outward(7.8954147, 5, -1) == "7.8954");
  CHECK(brief_outward(-7.8954147, 5, -1) == "-7.8955");
  CHECK(brief_outward(0.1, 5, 1) == "0.1");
  CHECK(brief_outward(0, 5, 1) == "0");
  CHECK(brief_outward(INFINITY, 5, 1) == "-");
  for (double value : {9.99999, 1e-300, 4e-310, 1e-322, 123456.7, 1 / 3.0, 99999.5, 1e22 / 7})
    for (double sign : {-1.0, 1.0})
      for (double side : {-1.0, 1.0}) {
        const double printed = std::strtod(brief_outward(sign * value, 5, side).c_str(), nullptr);
        CHECK(side * (printed - sign * value) >= 0);
        CHECK(std::abs(printed - sign * value) <= 2e-4 * value + 1e-323);
      }
}

TEST_CASE("text_table: columns line up") {
  CHECK(text_table({{"name", "mse"}, {"a", "10.5"}, {"long name", "1"}}, 1) ==
        "name        mse\na          10.5\nlong name     1\n");
  CHECK(brief(0.123456) == "0.123");
  CHECK(brief(std::nan("")) == "-");
  CHECK(brief(1.5, 0.25, 3) == "1.5 +- 0.25");
  CHECK(brief(1.5, std::nan(""), 3) == "1.5");
}

}  // namespace
}  // namespace keel
