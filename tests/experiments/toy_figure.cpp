// Figure 1 and those like it: data, nets, and small runs of each.
#include "../../experiments/toy_figure.h"

#include <cmath>
#include <set>

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
  const nlohmann::json summary = summary_of("fig6");
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
