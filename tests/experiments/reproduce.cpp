#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "../../experiments/plotting.h"
#include "../../experiments/reproduce.h"
#include "../sanitized.h"
#include "helpers.h"

namespace keel {
namespace {

// A PATH of the test's own for as long as it lives; the system's folders are searched all the same.
class PathScope {
 public:
  explicit PathScope(const std::string& path) : before_(std::getenv("PATH")) {
    setenv("PATH", path.c_str(), 1);
  }
  ~PathScope() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_CASE("reproduce: an unknown name lists the known ones") {
  const Ran ran = run_keel({"reproduce", "fig9"});
  CHECK(ran.code == 2);
  CHECK(ran.err.starts_with("keel: reproduce: got 'fig9', wanted one of fig1, "));
  CHECK(ran.err.ends_with("figures\n"));
}

TEST_CASE("reproduce: an --out that cannot be written fails before any work") {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "x");
  const Ran ran = run_keel({"reproduce", "fig1", "--out", file, "--epochs", "1000000000"});
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: output: got '" + file + "', wanted a folder\n");
}

TEST_CASE("reproduce fig7: transformers grow without Layer Norm, and are bounded with it") {
  const TemporaryFolder folder;
  const std::string out = folder / "fig7";
  const std::vector<std::string> arguments = {
      "reproduce", "fig7", "--seeds", "2", "--epochs", test::kSanitized ? "1" : "20",
      "--seed",    "3",    "--out",   out, "--device", "cpu",
      "--no-plot"};
  const Ran ran = run_keel(arguments);
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("proved |f| <=") != std::string::npos);
  const auto summary = json_of(out + "/summary.json");
  CHECK(summary["epochs"] == (test::kSanitized ? 1 : 20));
  CHECK(summary["sequences"][1]["b"] == -0.5);
  REQUIRE(summary["nets"].size() == 2);
  const auto &standard = summary["nets"][0], &bounded = summary["nets"][1];
  CHECK(standard["net"] == "standard");
  CHECK(standard["far_field_exponent"].get<double>() == doctest::Approx(1).epsilon(0.1));
  CHECK(standard["bound_by_seed"].is_null());
  CHECK(bounded["net"] == "ln_embedding");
  CHECK(std::abs(bounded["far_field_exponent"].get<double>()) < 0.1);
  for (const auto& net : summary["nets"]) {
    for (const char* name : {"train_mse_by_seed", "far_field_exponent_by_seed"})
      CHECK(net[name].size() == 2);
    CHECK(net["mse"].get<double>() > 0);
    CHECK(net["mse_ci"].get<double>() > 0);
  }
  for (std::size_t s = 0; s < 2; ++s) {
    const double largest = bounded["largest_found_by_seed"][s], bound = bounded["bound_by_seed"][s];
    CHECK(largest <= bound);
    CHECK(bound < 1e6);
    CHECK(standard["largest_found_by_seed"][s].get<double>() > bound);  // of slopes of 10,000
  }
  REQUIRE(summary["panels"].size() == 12);
  const std::string curves = content_of(out + "/curves.csv");
  CHECK(
      curves.starts_with("sequence,net,continuation,i,true,mean,ci_low,ci_high,seed_3,seed_4\n"
                         "rising,standard,one_step,21,21,"));
  CHECK(std::count(curves.begin(), curves.end(), '\n') == 1 + 12 * 80);
  // The first value behind what both were given: nobody has gone on by himself yet.
  std::map<std::string, std::string> first;
  std::istringstream lines(curves);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(",21,");
    if (at == std::string::npos) continue;
    const auto how = line.rfind(',', at - 1);
    const std::string key = line.substr(0, how), values = line.substr(at);
    if (first.contains(key)) CHECK(first[key] == values);
    first[key] = values;
  }
  CHECK(first.size() == 6);

  run_keel(arguments);
  CHECK(content_of(out + "/curves.csv") == curves);
}

TEST_CASE("reproduce prenorm: norms within blocks bound nothing, a last one does") {
  const TemporaryFolder folder;
  const std::string out = folder / "prenorm";
  const Ran ran =
      run_keel({"reproduce", "prenorm", "--seeds", "2", "--epochs", test::kSanitized ? "1" : "20",
                "--out", out, "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  const auto summary = json_of(out + "/summary.json");
  REQUIRE(summary["nets"].size() == 3);
  const auto& within = summary["nets"][0];
  CHECK(within["net"] == "ln_blocks");
  CHECK(within["bound_by_seed"].is_null());
  CHECK(within["far_field_exponent"].get<double>() == doctest::Approx(1).epsilon(0.1));
  for (const std::size_t k : {1, 2}) {
    const auto& net = summary["nets"][k];
    CHECK(net["net"] == (k == 1 ? "ln_blocks_last" : "rms_blocks_last"));
    CHECK(std::abs(net["far_field_exponent"].get<double>()) < 0.1);
    for (std::size_t s = 0; s < 2; ++s) {
      const double largest = net["largest_found_by_seed"][s], bound = net["bound_by_seed"][s];
      CHECK(largest <= bound);
      CHECK(largest > bound / 10);
      CHECK(within["largest_found_by_seed"][s].get<double>() > bound);
    }
  }
  // Each net's far predictions, within the largest that it is said to have made.
  std::istringstream lines(content_of(out + "/far.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "net,slope,seed_0,seed_1");
  double largest = 0;
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    if (!line.starts_with("ln_blocks,")) continue;
    largest = std::max(largest, std::stod(line.substr(line.rfind(',') + 1)));
  }
  CHECK(rows == 3 * 41);
  CHECK(largest == doctest::Approx(within["largest_found_by_seed"][1].get<double>()));
}

// A PATH with a python3 that has matplotlib, whose plot.py writes pictures of nothing, but fails on
// one figure.
class FailingPython {
 public:
  explicit FailingPython(const std::string& figure) : path_(folder_.str()) {
    const std::string fake = folder_.file(
        "python3",
        fmt::format("#!/bin/sh\n[ \"$1\" = -c ] && exit 0\n"
                    "[ \"$2\" = {0} ] && {{ echo warning; echo \"no $2 here\" >&2; exit 1; }}\n"
                    ": > \"$3/$2.png\"\n: > \"$3/$2.svg\"\n",
                    figure));
    std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  }

 private:
  TemporaryFolder folder_;
  PathScope path_;
};

TEST_CASE("reproduce figures: a folder a figure, and one summary of all, though a picture fails") {
  const TemporaryFolder folder;
  const FailingPython python("fig5");
  const Ran ran = run_keel(
      {"reproduce", "figures", "--seeds", "1", "--epochs", "2", "--out", folder.str(), "--json"});
  CHECK(ran.err == "keel: plot: no fig5 here\n");
  CHECK(ran.code == 1);
  const auto summary = nlohmann::json::parse(ran.out);
  CHECK(summary == json_of(folder / "summary.json"));
  std::size_t figures = 0;
  for (const Experiment& experiment : experiments()) {
    if (!experiment.in_figures) continue;
    const std::string own = folder / experiment.name;
    CHECK(summary["figures"].contains(experiment.name));
    CHECK(std::filesystem::exists(own + "/summary.json"));
    CHECK(std::filesystem::exists(own + "/" + experiment.name + ".png") ==
          (std::string(experiment.name) != "fig5"));
    ++figures;
  }
  CHECK(figures > 10);
  CHECK(summary["pictures"].size() == 2 * (figures - 1));
  CHECK(std::filesystem::exists(folder / "fig5/curves.csv"));
  CHECK(summary["figures"]["fig5"]["panels"].size() == 12);
  CHECK(summary["figures"]["fig5"]["panels"][0]["train_mse_ci"].is_null());  // one seed: none
}

TEST_CASE("reproduce: pictures are drawn, or it says how to draw them") {
  const TemporaryFolder folder;
  const Ran ran =
      run_keel({"reproduce", "fig5", "--seeds", "2", "--epochs", "2", "--out", folder / "out"});
  CHECK(ran.code == 0);
  if (std::filesystem::exists(folder / "out/fig5.png")) {
    CHECK(content_of(folder / "out/fig5.png").starts_with("\x89PNG"));
    CHECK(content_of(folder / "out/fig5.svg").find(">LN every<") == std::string::npos);
    CHECK(content_of(folder / "out/fig5.svg").find("GELU, LN every") != std::string::npos);
    CHECK(ran.out.ends_with("pictures:\n" + folder / "out/fig5.png" + "\n" +
                            folder / "out/fig5.svg" + "\n"));
    CHECK(json_of(folder / "out/summary.json")["pictures"].size() == 2);
  } else {
    CHECK(ran.err.find("python3-matplotlib") != std::string::npos);
  }
}

TEST_CASE("plot: the Python that is found is used, and its complaint is passed on") {
  const TemporaryFolder folder;
  const FailingPython python("fig1");
  CHECK(message_of<Error>([&] { run_plot("fig1", folder / "x"); }) == "plot: no fig1 here");
  const Ran ran = run_keel({"reproduce", "fig2", "--out", folder / "fig2", "--quiet"});
  CHECK(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(json_of(folder / "fig2/summary.json")["pictures"][1] == folder / "fig2/fig2.svg");
}

TEST_CASE("plot.py: one clear line on missing files") {
  const TemporaryFolder folder;
  const std::string message = message_of<Error>([&] {
    const Drawn drawn = run_plot("fig1", folder.str());
    if (drawn.pictures.empty()) fail("plot", "{}", drawn.how_later);
  });
  const bool no_matplotlib = message.find("no python3 has matplotlib") != std::string::npos;
  if (!no_matplotlib)
    CHECK(message ==
          "plot: plot.py: cannot read " + folder / "summary.json" + ": No such file or directory");
}

}  // namespace
}  // namespace keel
