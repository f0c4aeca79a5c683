// Figure 1 and those like it: data, nets, and small runs of each.
#include "../../experiments/toy_figure.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "../sanitized.h"
#include "helpers.h"

namespace keel {
namespace {

constexpr int kEpochs = test::kSanitized ? 4 : 40;

// What a small run of `keel reproduce NAME` writes.
nlohmann::json summary_of(const std::string& name) {
  const TemporaryFolder folder;
  const Ran ran = run_keel({"reproduce", name, "--seeds", "2", "--epochs", std::to_string(kEpochs),
                            "--out", folder.str(), "--device", "cpu", "--no-plot"});
  REQUIRE(ran.err == "");
  return json_of(folder / "summary.json");
}

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

// Of nets that something bounds an interval a seed, no wider than what f takes but for next to
// nothing; it holds what f is far out, and is not far wider.
void check_proved(const nlohmann::json& panel, bool bounded) {
  CAPTURE(panel["spec"]);
  REQUIRE(panel.contains("proved") == bounded);
  if (!bounded) return;
  CHECK(panel["proved_closed"] == true);
  double low = INFINITY, high = -INFINITY;
  for (const auto& seed : panel["proved_by_seed"]) {
    CHECK(seed[0].get<double>() < seed[1].get<double>());
    low = std::min(low, seed[0].get<double>());
    high = std::max(high, seed[1].get<double>());
  }
  CHECK(panel["proved"][0] == low);
  CHECK(panel["proved"][1] == high);
  CHECK(panel["far_field_size"].get<double>() <= std::max(std::abs(low), std::abs(high)));
}

TEST_CASE("reproduce fig1: a small run writes everything") {
  const TemporaryFolder folder;
  const std::string out = folder / "fig1";
  const std::vector<std::string> arguments = {
      "reproduce", "fig1", "--seeds",  "2",   "--epochs", std::to_string(kEpochs), "--out", out,
      "--seed",    "7",    "--device", "cpu", "--no-plot"};
  const Ran ran = run_keel(arguments);
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("growth exponent") != std::string::npos);

  const auto summary = json_of(out + "/summary.json");
  CHECK(summary["seeds"] == 2);
  CHECK(summary["epochs"] == kEpochs);
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
    check_proved(panel, panel["net"] != "standard");
  }
  CHECK(panels.size() == 12);
  CHECK(summary["proof_seconds"].get<double>() > 0);
  CHECK(ran.out.find("proved of every x: f in") != std::string::npos);

  const std::string curves = content_of(out + "/curves.csv");
  CHECK(
      curves.starts_with("dataset,net,activation,x,mean,ci_low,ci_high,seed_7,seed_8\n"
                         "sinusoid,standard,relu,-25,"));
  CHECK(std::count(curves.begin(), curves.end(), '\n') == 1 + 12 * 501);
  const std::string points = content_of(out + "/training.csv");
  CHECK(std::count(points.begin(), points.end(), '\n') == 1 + 3 * 100);

  std::map<std::string, std::array<nlohmann::json, 2>> proved;  // of a panel, by seed
  for (const auto& panel : summary["panels"])
    if (panel.contains("proved"))
      proved[fmt::format("{},{},relu", panel["dataset"].get<std::string>(),
                         panel["net"].get<std::string>())] = {panel["proved_by_seed"][0],
                                                              panel["proved_by_seed"][1]};
  std::istringstream rows(curves);
  std::string row;
  std::int64_t held = 0;
  while (std::getline(rows, row)) {
    std::vector<std::string> cells;
    for (std::istringstream line(row); std::getline(line, row, ',');) cells.push_back(row);
    const auto of = proved.find(fmt::format("{},{},{}", cells[0], cells[1], cells[2]));
    if (of == proved.end()) continue;
    for (std::size_t seed = 0; seed < 2; ++seed) {
      const double f = std::stod(cells.at(7 + seed)), slack = 1e-5 * (1 + std::abs(f));
      CHECK(f >= of->second[seed][0].get<double>() - slack);  // float32 evaluates it
      CHECK(f <= of->second[seed][1].get<double>() + slack);
      ++held;
    }
  }
  CHECK(held == 2 * 9 * 501);

  run_keel(arguments);
  CHECK(content_of(out + "/curves.csv") == curves);
}

TEST_CASE("reproduce fig6: Batch Norm bounds nothing") {
  const nlohmann::json summary = summary_of("fig6");
  CHECK(summary["batchnorm"].get<std::string>().find("training points") != std::string::npos);
  CHECK(!summary.contains("layernorm"));
  std::set<std::string> nets;
  for (const auto& panel : summary["panels"]) {
    nets.insert(panel["net"].get<std::string>());
    CHECK(std::abs(panel["far_field_exponent"].get<double>() - 1) < 0.1);
    check_proved(panel, false);
  }
  CHECK(nets == std::set<std::string>{"standard", "bn_first", "bn_second", "bn_every"});
  CHECK(summary["panels"].size() == 12);
  CHECK(summary["panels"][11]["spec"] ==
        "dense(128) batchnorm relu dense(128) batchnorm relu dense(1)");
}

TEST_CASE("reproduce activations: leaky relu and selu grow like relu, tanh is bounded by itself") {
  const nlohmann::json summary = summary_of("activations");
  REQUIRE(summary["panels"].size() == 18);
  for (const auto& panel : summary["panels"]) {
    const bool grows = panel["net"] == "standard" && panel["activation"] != "tanh";
    CAPTURE(panel["spec"]);
    const double off = panel["far_field_exponent"].get<double>() - grows;
    // Of a SELU net that has hardly been trained 0 may be near the points it is measured at.
    const bool hardly = test::kSanitized && grows && panel["activation"] == "selu";
    CHECK(std::abs(off) < (hardly ? 0.3 : 0.1));
    check_proved(panel, !grows);
  }
  std::set<std::string> specs;
  for (const auto& panel : summary["panels"]) specs.insert(panel["spec"].get<std::string>());
  CHECK(specs == std::set<std::string>{
                     "dense(128) leakyrelu dense(128) leakyrelu dense(1)",
                     "dense(128) layernorm leakyrelu dense(128) layernorm leakyrelu dense(1)",
                     "dense(128) tanh dense(128) tanh dense(1)",
                     "dense(128) selu dense(128) selu dense(1)",
                     "dense(128) layernorm selu dense(128) layernorm selu dense(1)",
                     "dense(128) layernorm tanh dense(128) layernorm tanh dense(1)"});
}

TEST_CASE("reproduce residual: a norm within bounds nothing, one that nothing passes by does") {
  const nlohmann::json summary = summary_of("residual");
  REQUIRE(summary["panels"].size() == 12);
  std::set<std::string> specs;
  for (const auto& panel : summary["panels"]) {
    specs.insert(panel["spec"].get<std::string>());
    const bool grows = panel["net"] == "standard" || panel["net"] == "ln_within";
    const double exponent = panel["far_field_exponent"];
    // Of a net that has hardly been trained 0 may be among the points it is measured at.
    CHECK(exponent > (!grows ? -0.1 : test::kSanitized ? 0.4 : 0.9));
    CHECK(exponent < (!grows ? 0.1 : 1.1));
    check_proved(panel, !grows);
  }
  const std::string plain = "residual(relu dense(128)) ",
                    within = "residual(layernorm relu dense(128)) ";
  CHECK(specs == std::set<std::string>{"dense(128) " + plain + plain + "dense(1)",
                                       "dense(128) " + within + within + "dense(1)",
                                       "dense(128) layernorm " + plain + plain + "dense(1)",
                                       "dense(128) " + plain + plain + "layernorm dense(1)"});
}

TEST_CASE("reproduce rmsnorm: it bounds as Layer Norm does") {
  const nlohmann::json summary = summary_of("rmsnorm");
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

}  // namespace
}  // namespace keel
