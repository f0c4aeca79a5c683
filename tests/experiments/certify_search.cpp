// What the search of keel certify finds, beside what was proved.
#include "../../experiments/certify_search.h"
#include "../../experiments/standardiser.h"

#include <algorithm>
#include <cmath>

#include "../../nn/weights.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("certify: a search that finds more than was proved is an error") {
  Examples rows;
  rows.rows = rows.features = 1;
  rows.x = rows.y = {0};
  const Standardiser units(parse_standardise("none"), rows);
  check_kept(2, 2, units);
  check_kept(2, INFINITY, units);
  CHECK_THROWS_AS(check_kept(2.1, 2, units), Error);
}

TEST_CASE("certify trained: what rounding takes out of an interval is evaluated with more digits") {
  // Its Layer Norm sees nothing but biases; a million out, double has lost two thirds of their
  // digits.
  const TemporaryFolder folder;
  const char* spec = "dense(4) layernorm dense(1)";
  Net net(spec, 1, {.seed = 3, .dtype = DType::f64});
  fill(net.layout().member_view(net.flat(), 0, 0), 1e8);
  save_weights(net, folder / "w.safetensors");
  const Ran ran = run_keel({"certify", "--mode", "trained", "--net", spec, "--weights",
                            folder / "w.safetensors", "--out", folder / "out", "--device", "cpu"});
  CHECK(ran.err == "");
  REQUIRE(ran.code == 0);
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["found_of_interval"].get<double>() <= 1 + 1e-6);
  CHECK(summary["largest_found"].get<double>() <= summary["bound"].get<double>() * (1 + 1e-6));
  // In double it leaves the interval.
  double low = 0, high = 0;
  for (int i = 0; i < 2000; ++i) {
    const Tensor x = Tensor::full({1, 1}, 1e5 + 450.0 * i, DType::f64);
    low = std::min(low, net.predict(x).item());
    high = std::max(high, net.predict(x).item());
  }
  CHECK(
      (low < summary["interval"][0].get<double>() || high > summary["interval"][1].get<double>()));
}

}  // namespace
}  // namespace keel
