#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "../../experiments/plotting.h"
#include "../../experiments/reproduce.h"
#include "../../experiments/toy_figure.h"
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

TEST_CASE("toy figure: data, nets and the exponent") {
  CHECK(evenly_spaced(-5, 5, 3) == std::vector<double>{-5, 0, 5});
  CHECK(log_spaced(1e2, 1e4, 3)[1] == doctest::Approx(1e3));
  CHECK(toy_data()[0].f(1) == std::sin(1));
  CHECK(toy_data()[1].f(3) == 1.5);
  CHECK(toy_data()[2].f(5) == 5);
  CHECK(toy_net("standard", "relu").spec == "dense(128) relu dense(128) relu dense(1)");
  CHECK(toy_net("ln_first", "relu").spec == "dense(128) layernorm relu dense(128) relu dense(1)");
  CHECK(toy_net("ln_second", "gelu").spec == "dense(128) gelu dense(128) layernorm gelu dense(1)");
  CHECK(toy_net("ln_every", "silu").spec ==
        "dense(128) layernorm silu dense(128) layernorm silu dense(1)");
  CHECK_THROWS_WITH_AS(toy_net("ln_last", "relu"),
                       "toy_net: got net 'ln_last', wanted standard, or first, second or every "
                       "behind ln_, rms_ or bn_",
                       Error);

  const std::vector<double> x = log_spaced(1e2, 1e4, 21);
  std::vector<double> linear, constant(x.size(), -0.5);
  for (double at : x) linear.push_back(-3 * at);
  CHECK(far_field_exponent(x, linear, linear) == doctest::Approx(1));
  CHECK(far_field_exponent(x, constant, constant) == doctest::Approx(0));
  CHECK(far_field_exponent(x, linear, constant) == doctest::Approx(0.5));
  CHECK(std::isfinite(far_field_exponent(x, std::vector<double>(x.size(), 0), linear)));
}

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

TEST_CASE("reproduce fig1: a small run writes everything") {
  const TemporaryFolder folder;
  const std::string out = folder / "fig1";
  const int epochs = test::kSanitized ? 4 : 40;
  const std::vector<std::string> arguments = {
      "reproduce", "fig1", "--seeds",  "2",   "--epochs", std::to_string(epochs), "--out", out,
      "--seed",    "7",    "--device", "cpu", "--no-plot"};
  const Ran ran = run_keel(arguments);
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("growth exponent") != std::string::npos);

  const auto summary = json_of(out + "/summary.json");
  CHECK(summary["seeds"] == 2);
  CHECK(summary["epochs"] == epochs);
  CHECK(summary["datasets"][2]["formula"] == "y = x^2 / 5");
  REQUIRE(summary["panels"].size() == 12);
  std::set<std::string> panels;
  for (const auto& panel : summary["panels"]) {
    panels.insert(panel["dataset"].get<std::string>() + " " + panel["net"].get<std::string>());
    CHECK(panel["activation"] == "relu");
    CHECK(panel["train_mse"].get<double>() > 0);
    CHECK(panel["train_mse_ci"].get<double>() > 0);
    CHECK(panel["far_end_x"] == 25);
    // Even hardly trained: the exponent is a matter of the architecture.
    const double exponent = panel["far_field_exponent"];
    CHECK(std::abs(exponent - (panel["net"] == "standard" ? 1 : 0)) < 0.1);
  }
  CHECK(panels.size() == 12);

  const std::string curves = content_of(out + "/curves.csv");
  CHECK(
      curves.starts_with("dataset,net,activation,x,mean,ci_low,ci_high,seed_7,seed_8\n"
                         "sinusoid,standard,relu,-25,"));
  CHECK(std::count(curves.begin(), curves.end(), '\n') == 1 + 12 * 501);
  const std::string points = content_of(out + "/training.csv");
  CHECK(std::count(points.begin(), points.end(), '\n') == 1 + 3 * 100);

  run_keel(arguments);
  CHECK(content_of(out + "/curves.csv") == curves);
}

TEST_CASE("reproduce fig6: Batch Norm bounds nothing") {
  const TemporaryFolder folder;
  const int epochs = test::kSanitized ? 4 : 40;
  const Ran ran = run_keel({"reproduce", "fig6", "--seeds", "2", "--epochs", std::to_string(epochs),
                            "--out", folder.str(), "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  const auto summary = json_of(folder / "summary.json");
  CHECK(summary["batchnorm"].get<std::string>().find("training points") != std::string::npos);
  CHECK(!summary.contains("layernorm"));
  std::set<std::string> nets;
  for (const auto& panel : summary["panels"]) {
    nets.insert(panel["net"].get<std::string>());
    CHECK(std::abs(panel["far_field_exponent"].get<double>() - 1) < 0.1);
  }
  CHECK(nets == std::set<std::string>{"standard", "bn_first", "bn_second", "bn_every"});
  CHECK(summary["panels"].size() == 12);
  CHECK(summary["panels"][11]["spec"] ==
        "dense(128) batchnorm relu dense(128) batchnorm relu dense(1)");
}

TEST_CASE("reproduce activations: leaky relu grows like relu, and tanh is bounded by itself") {
  const TemporaryFolder folder;
  const int epochs = test::kSanitized ? 4 : 40;
  const Ran ran =
      run_keel({"reproduce", "activations", "--seeds", "2", "--epochs", std::to_string(epochs),
                "--out", folder.str(), "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  const auto summary = json_of(folder / "summary.json");
  REQUIRE(summary["panels"].size() == 12);
  for (const auto& panel : summary["panels"]) {
    const bool grows = panel["net"] == "standard" && panel["activation"] == "leakyrelu";
    CHECK(std::abs(panel["far_field_exponent"].get<double>() - grows) < 0.1);
  }
  std::set<std::string> specs;
  for (const auto& panel : summary["panels"]) specs.insert(panel["spec"].get<std::string>());
  CHECK(specs == std::set<std::string>{
                     "dense(128) leakyrelu dense(128) leakyrelu dense(1)",
                     "dense(128) layernorm leakyrelu dense(128) layernorm leakyrelu dense(1)",
                     "dense(128) tanh dense(128) tanh dense(1)",
                     "dense(128) layernorm tanh dense(128) layernorm tanh dense(1)"});
}

TEST_CASE("reproduce residual: a norm within bounds nothing, one that nothing passes by does") {
  const TemporaryFolder folder;
  const int epochs = test::kSanitized ? 4 : 40;
  const Ran ran =
      run_keel({"reproduce", "residual", "--seeds", "2", "--epochs", std::to_string(epochs),
                "--out", folder.str(), "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  const auto summary = json_of(folder / "summary.json");
  REQUIRE(summary["panels"].size() == 12);
  std::set<std::string> specs;
  for (const auto& panel : summary["panels"]) {
    specs.insert(panel["spec"].get<std::string>());
    const bool grows = panel["net"] == "standard" || panel["net"] == "ln_within";
    const double exponent = panel["far_field_exponent"];
    // Of a net that has hardly been trained 0 may be among the points it is measured at.
    CHECK(exponent > (!grows ? -0.1 : test::kSanitized ? 0.4 : 0.9));
    CHECK(exponent < (!grows ? 0.1 : 1.1));
  }
  const std::string plain = "residual(relu dense(128)) ",
                    within = "residual(layernorm relu dense(128)) ";
  CHECK(specs == std::set<std::string>{"dense(128) " + plain + plain + "dense(1)",
                                       "dense(128) " + within + within + "dense(1)",
                                       "dense(128) layernorm " + plain + plain + "dense(1)",
                                       "dense(128) " + plain + plain + "layernorm dense(1)"});
}

TEST_CASE("reproduce rmsnorm: it bounds as Layer Norm does") {
  const TemporaryFolder folder;
  const int epochs = test::kSanitized ? 4 : 40;
  const Ran ran =
      run_keel({"reproduce", "rmsnorm", "--seeds", "2", "--epochs", std::to_string(epochs), "--out",
                folder.str(), "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  const auto summary = json_of(folder / "summary.json");
  CHECK(summary["rmsnorm"].get<std::string>().find("gain, eps 2^-23") != std::string::npos);
  CHECK(!summary.contains("layernorm"));
  std::set<std::string> nets;
  for (const auto& panel : summary["panels"]) {
    nets.insert(panel["net"].get<std::string>());
    const double exponent = panel["far_field_exponent"];
    CHECK(std::abs(exponent - (panel["net"] == "standard" ? 1 : 0)) < 0.1);
  }
  CHECK(nets == std::set<std::string>{"standard", "rms_first", "rms_second", "rms_every"});
  CHECK(summary["panels"][11]["spec"] ==
        "dense(128) rmsnorm relu dense(128) rmsnorm relu dense(1)");
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

TEST_CASE("reproduce figures: a folder a figure, and one summary of all") {
  const TemporaryFolder folder;
  const Ran ran = run_keel({"reproduce", "figures", "--seeds", "1", "--epochs", "2", "--out",
                            folder.str(), "--json", "--no-plot"});
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  const auto summary = nlohmann::json::parse(ran.out);
  CHECK(summary == json_of(folder / "summary.json"));
  for (const Experiment& experiment : experiments()) {
    if (!experiment.in_figures) continue;
    CHECK(summary["figures"].contains(experiment.name));
    CHECK(std::filesystem::exists(folder / experiment.name + "/summary.json"));
  }
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
  // Stands in for a python3 with matplotlib whose plot.py fails.
  const std::string fake = folder.file(
      "python3",
      "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho warning\necho \"no $2 here\" >&2\nexit 1\n");
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  const PathScope path(folder.str());
  CHECK(message_of<Error>([&] { run_plot("fig1", folder / "x"); }) == "plot: no fig1 here");

  // A picture that fails is reported at the end; the numbers of every figure are there. Under a
  // sanitizer one figure must do.
  using Names = std::vector<std::string>;
  const bool one = test::kSanitized;
  const Ran ran = run_keel({"reproduce", one ? "fig1" : "figures", "--seeds", "1", "--epochs", "2",
                            "--out", folder / "out"});
  CHECK(ran.code == 1);
  for (const std::string& figure : one ? Names{"fig1"} : Names{"fig1", "fig2", "fig5"})
    CHECK(ran.err.find(fmt::format("keel: plot: no {} here\n", figure)) != std::string::npos);
  for (const std::string& file :
       one ? Names{"/summary.json"}
           : Names{"/fig1/summary.json", "/fig5/curves.csv", "/summary.json"})
    CHECK(std::filesystem::exists(folder / "out" + file));
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
