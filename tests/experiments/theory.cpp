// Figure 2 and the theory page, as typed, with fewer seeds.
#include <algorithm>
#include <cmath>

#include "../../experiments/npy.h"
#include "../../experiments/theory_page.h"
#include "../sanitized.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("fig2: LN kernels are bounded chessboards, the others grow") {
  const TemporaryFolder folder;
  const Ran ran = run_keel({"reproduce", "fig2", "--seeds", "2", "--no-plot", "--device", "cpu",
                            "--out", folder.str(), "--quiet"});
  REQUIRE(ran.err == "");
  const auto summary = json_of(folder / "summary.json");
  REQUIRE(summary["panels"].size() == 8);
  for (const auto& panel : summary["panels"]) {
    CAPTURE(panel["net"].get<std::string>());
    const bool norm = panel["net"] != "standard";
    CHECK(panel["empirical"]["growth_exponent"].get<double>() ==
          doctest::Approx(norm ? 0 : 2).epsilon(0.02));
    CHECK(panel["infinite"]["growth_exponent"].get<double>() ==
          doctest::Approx(norm ? 0 : 2).epsilon(0.001));
    CHECK(panel["relative_distance"].get<double>() < 0.4);
    if (norm) CHECK(panel["empirical"]["chessboard_correlation"].get<double>() > 0.9);
    const std::string name = fmt::format("{}_{}", panel["net"].get<std::string>(),
                                         panel["parameterisation"].get<std::string>());
    for (const char* kind : {"empirical", "infinite"}) {
      const Tensor kernel = read_npy(folder / fmt::format("{}_{}.npy", name, kind));
      const auto values = kernel.to_vector<double>();
      const auto n = static_cast<std::size_t>(kernel.size(0));
      CHECK(values[n * n - 1] == panel[kind]["corner_same_sign"].get<double>());
      double largest = 0;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j)
          largest = std::max(largest, std::abs(values[i * n + j] - values[j * n + i]));
      CHECK(largest <= 1e-12 * values[n * n - 1]);
    }
  }
}

// Under a sanitizer `reproduce figures` runs it, with one seed.
TEST_CASE("theory: every statement holds, and the page says so" * doctest::skip(test::kSanitized)) {
  const TemporaryFolder folder;
  const Ran ran = run_keel({"reproduce", "theory", "--seeds", "3", "--no-plot", "--device", "cpu",
                            "--out", folder.str()});
  CHECK(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("FAILS") == std::string::npos);
  const auto summary = json_of(folder / "summary.json");
  CHECK(summary["all_hold"] == true);
  CHECK(summary["sections"].size() == 6);
  const std::string curves = content_of(folder / "curves.csv");
  CHECK(std::count(curves.begin(), curves.end(), '\n') == 1 + 12 * 501);
}

TEST_CASE("theory: a statement that fails is said on the page, in the summary and by the result") {
  const Check holds = {"a", "1", true, {{"one", 1}}}, fails = {"b", "2", false};
  const Reproduced good = theory_page({{"all", {holds, holds}}}, {{"seeds", 3}});
  CHECK(good.problem == "");
  CHECK(good.numbers["all_hold"] == true);
  CHECK(good.numbers["seeds"] == 3);
  const Reproduced bad =
      theory_page({{"first", {holds, fails}}, {"second", {holds}}}, Json::object());
  CHECK(bad.problem == "theory: 1 of 3 checks fail");
  CHECK(bad.numbers["all_hold"] == false);
  CHECK(bad.numbers["sections"][0]["checks"][0]["one"] == 1);
  CHECK(bad.numbers["sections"][0]["checks"][1]["holds"] == false);
  CHECK(bad.table.starts_with("theory: 2 of 3 checks hold\n"));
  CHECK(bad.table.find("  FAILS") != std::string::npos);
  CHECK(good.table.find("FAILS") == std::string::npos);
}

TEST_CASE("theory: the SPECs put LN where their names say") {
  const auto& nets = theory_nets();
  REQUIRE(nets.size() == 4);
  CHECK(nets[0].spec(8) == "dense(8) relu dense(8) relu dense(1)");
  CHECK(nets[1].spec(8) == "dense(8) layernorm(affine=0, eps=0) relu dense(8) relu dense(1)");
  CHECK(nets[2].spec(8) == "dense(8) relu dense(8) layernorm(affine=0, eps=0) relu dense(1)");
  const TheoryNet after = {"ln_after", "", true};
  CHECK(after.spec(8) == "dense(8) relu layernorm(affine=0, eps=0) dense(8) relu dense(1)");
}

}  // namespace
}  // namespace keel
