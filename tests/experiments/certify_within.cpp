// keel certify --within, as typed.
#include "trained.h"

namespace keel {
namespace {

TEST_CASE("certify trained: within a distance a net without a norm is bounded, too") {
  const Trained net(kNoNorm, "xy");
  double narrower = 0;
  for (const std::string within : {"0.5", "3", "100"}) {
    CAPTURE(within);
    const Ran ran =
        net.certify({"--data", net.table, "--target", "y", "--within", within, "--boxes", "0"});
    REQUIRE(ran.err == "");
    CHECK(ran.out.find("  whose |x|, standardised, is at most ") != std::string::npos);
    CHECK(ran.out.find("proved for |x| <= " + within + ", standardised: f(x) is never outside ") !=
          std::string::npos);
    CHECK(ran.out.find("from x itself on, of 2 features; dual, 2 layers\n") != std::string::npos);
    const auto summary = net.summary();
    CHECK(summary["within"] == std::stod(within));
    CHECK(summary["region"] == summary["within"]);
    CHECK(summary["bounded"] == true);
    CHECK(summary["bounded_by"] == "within");
    CHECK(summary["farthest_row"].get<double>() > 1);
    CHECK(summary["farthest_row"].get<double>() < 5);
    CHECK(!summary.contains("exceed"));
    const double bound = summary["bound"], found = summary["largest_found"];
    CHECK(found <= bound);
    CHECK(found > 0.5 * bound);
    CHECK(summary["largest_found_at"]["distance"].get<double>() <= std::stod(within) * (1 + 1e-12));
    CHECK(bound > narrower);
    narrower = bound;
  }
  CHECK(net.certify({}).out.find("passes ") != std::string::npos);
  CHECK(!net.summary().contains("within"));
}

TEST_CASE("certify: within a distance a kernel that grows bounds predictions, too") {
  const Trained data;
  const auto certify = [&](const char* net, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "certify",           "--net",    net,       "--data", data.table,
        "--target",          "y",        "--ridge", "0.01",   "--out",
        data.folder / "out", "--device", "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  for (const char* net : {kNoNorm, "dense(8) tanh dense(8) layernorm dense(1)", kNet}) {
    CAPTURE(net);
    double narrower = 0;
    for (const std::string within : {"1", "20"}) {
      const Ran ran = certify(net, {"--within", within});
      CHECK(ran.out.find("largest Theta(x, x) for |x| <= " + within + ", standardised ") !=
            std::string::npos);
      CHECK(ran.out.find("certificate for |x| <= " + within +
                         ", standardised: |f(x)| is at most") != std::string::npos);
      CHECK(ran.out.find("nothing is proved") == std::string::npos);
      const auto summary = data.summary();
      CHECK(summary["within"] == std::stod(within));
      const double bound = summary["bound"], found = summary["largest_found"];
      CHECK(summary["bounded"] == true);
      CHECK(found <= bound);
      CHECK(found > 0.02 * bound);
      CHECK(bound >= narrower);
      narrower = bound;
    }
  }
  const Ran ran = certify(kNet, {"--mode", "empirical", "--within", "3"});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("--within is for --mode infinite and trained") != std::string::npos);
}

}  // namespace
}  // namespace keel
