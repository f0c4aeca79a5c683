#include <algorithm>
#include <cmath>

#include "../../experiments/boosting.h"
#include "../../experiments/table.h"
#include "../../experiments/table1_report.h"
#include "table1_data.h"

namespace keel {
namespace {

std::string default_methods() {
  std::string all;
  for (const std::string& method : table1_methods())
    if (method != "xgboost" || has_boosting()) all += (all.empty() ? "" : ",") + method;
  return all;
}

TEST_CASE("table1: every method runs end to end and is judged") {
  const Table1Data data;
  const std::string out = data.folder / "out";
  const Ran ran = data.run(out, {"--seeds", "2"});
  REQUIRE(ran.code == 0);
  CHECK(
      ran.err.starts_with("table1: " + data.csv + ": 300 rows x 10 columns (header, RMSD first)"));
  CHECK(ran.out.find("0.50 +- 0.02") != std::string::npos);  // the paper's beside ours

  const auto summary = json_of(out + "/summary.json");
  CHECK(summary["train_rows"] == 234);
  CHECK(summary["id_rows"] == 26);
  CHECK(summary["ood_rows"] == 40);
  CHECK(summary["recipe"]["standardise"] == "x");
  CHECK(summary["left_out"].size() == (has_boosting() ? 0 : 1));
  std::string methods;
  for (const auto& row : summary["rows"]) {
    const std::string method = row["method"];
    methods += (methods.empty() ? "" : ",") + method;
    CHECK(row["id_r2"].is_number());
    CHECK(row["ood_rmse"].get<double>() > 0);
    const bool kernel = method.starts_with("ntk_");
    CHECK(row["seeds"].size() == (kernel ? 1 : 2));
    CHECK(row["ood_r2_ci"].is_number() == !kernel);
    CHECK(row.contains("paper") == !kernel);
    if (!kernel) continue;
    const auto& details = row["details"][0];
    CHECK(details["train_rows"] == 234);
    CHECK(details["ridges_tried"].size() == 9);
    if (method == "ntk_standard") {
      CHECK(details["bound"].is_null());
    } else {
      const double bound = details["bound"];
      CHECK(bound > details["largest_found"].get<double>());
      CHECK(bound == doctest::Approx(details["target_deviation"].get<double>() *
                                     std::sqrt(details["supremum"].get<double>() *
                                               details["data_fit"].get<double>()))
                         .epsilon(0.01));
      CHECK(row["id_r2"].get<double>() > 0.5);
    }
  }
  CHECK(methods == default_methods());

  const std::string table = content_of(out + "/table1.csv");
  CHECK(table.starts_with("method,seeds,id_r2,id_r2_ci,ood_r2,ood_r2_ci,"));
  CHECK(std::count(table.begin(), table.end(), '\n') ==
        static_cast<long>(summary["rows"].size()) + 1);

  const Table predictions = read_table(out + "/predictions_ln_every.csv");
  CHECK(predictions.names ==
        std::vector<std::string>{"row", "area", "target", "prediction", "seed_3", "seed_4"});
  REQUIRE(predictions.rows == 40);
  std::vector<double> by_seed[2], wanted;
  for (int row = 0; row < 40; ++row) {
    CHECK(predictions.at(row, 0) == 260 + row);
    CHECK(predictions.at(row, 1) >= 20000);
    CHECK(predictions.at(row, 3) ==
          doctest::Approx((predictions.at(row, 4) + predictions.at(row, 5)) / 2));
    wanted.push_back(predictions.at(row, 2));
    for (int seed : {0, 1}) by_seed[seed].push_back(predictions.at(row, 4 + seed));
  }
  const double mean = (r_squared(by_seed[0], wanted) + r_squared(by_seed[1], wanted)) / 2;
  for (const auto& row : summary["rows"])
    if (row["method"] == "ln_every") CHECK(row["ood_r2"].get<double>() == doctest::Approx(mean));
}

TEST_CASE("table1: repeated rows without a ridge are named") {
  Table1Data data;
  data.csv = data.folder.file("repeated.csv", small_table1_data(60));
  const Ran ran = data.run(data.folder / "out", {"--methods", "ntk_ln_first", "--ntk-ridge", "0"});
  CHECK(ran.code == 1);
  CHECK(ran.out == "");
  INFO(ran.err);
  CHECK(ran.err.find("repeat") != std::string::npos);
  CHECK(ran.err.find("nan") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(data.folder / "out/table1.csv"));
}

TEST_CASE("table1: fewer rows and more seeds for the exact regressions") {
  const Table1Data data;
  const std::string out = data.folder / "out";
  const Ran ran = data.run(out, {"--methods", "ntk_ln_every", "--seeds", "3", "--ntk-seeds", "2",
                                 "--ntk-rows", "100", "--ntk-ridge", "0.1"});
  REQUIRE(ran.code == 0);
  const auto row = json_of(out + "/summary.json")["rows"][0];
  CHECK(row["seeds"] == std::vector<int>{3, 4});
  CHECK(row["details"][1]["train_rows"] == 100);
  CHECK(row["details"][1]["ridge_relative"] == 0.1);
  CHECK(row["ood_r2_ci"].is_number());

  const Ran all =
      data.run(out, {"--methods", "ntk_ln_every", "--ntk-ridge", "0.1", "--ntk-rows", "0"});
  REQUIRE(all.code == 0);
  const auto of_all = json_of(out + "/summary.json")["rows"][0]["details"][0];
  CHECK(of_all["train_rows"] == 234);
  CHECK(row["details"][0]["data_fit"].get<double>() < 0.7 * of_all["data_fit"].get<double>());

  // No more of them than seeds, and never under another ridge.
  const std::vector<std::string> one = {"--methods", "ntk_ln_every", "--seeds", "1", "--ntk-seeds",
                                        "3",         "--ntk-ridge"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), one.begin(), one.end());
    return data.run(out, more);
  };
  REQUIRE(with({"0.1"}).code == 0);
  CHECK(json_of(out + "/summary.json")["rows"][0]["seeds"].size() == 1);
  const Ran other = with({"0.5", "--resume"});
  CHECK(other.code == 1);
  CHECK(other.err.find("ntk_ln_every") != std::string::npos);
}

TEST_CASE("table1: losses and bounds are in the target's own units") {
  Table1Data data;
  const auto details_of = [&](const char* method) {
    const std::string out = data.folder / "out";
    const Ran ran = data.run(
        out, {"--methods", method, "--seeds", "1", "--standardise", "xy", "--ntk-ridge", "0.1"});
    REQUIRE(ran.code == 0);
    return json_of(out + "/summary.json")["rows"][0]["details"][0];
  };
  const auto net = details_of("ln_every"), kernel = details_of("ntk_ln_every");
  data.csv = data.folder.file("tenfold.csv", small_table1_data(0, 10));
  const auto tenfold_net = details_of("ln_every"), tenfold_kernel = details_of("ntk_ln_every");
  const auto times = [](const nlohmann::json& value, const nlohmann::json& of) {
    return value.get<double>() / of.get<double>();
  };
  CHECK(times(tenfold_net["train_mse"], net["train_mse"]) == doctest::Approx(100).epsilon(1e-3));
  for (const char* key : {"bound", "largest_found", "target_mean", "target_deviation"}) {
    CAPTURE(key);
    CHECK(times(tenfold_kernel[key], kernel[key]) == doctest::Approx(10).epsilon(1e-3));
  }
  // About the mean, which is 8: predictions themselves go beyond it.
  CHECK(kernel["largest_found"].get<double>() < 8);
}

TEST_CASE("table1: recipes, one by one and as a grid") {
  const Table1Data data;
  const std::string out = data.folder / "out";
  const Ran grid = data.run(out, {"--recipes"});
  REQUIRE(grid.code == 0);
  const auto summary = json_of(out + "/summary.json");
  REQUIRE(summary["recipes"].size() == 12);
  CHECK(grid.out.find("nearest: " + summary["nearest"].get<std::string>()) != std::string::npos);
  CHECK(read_file(out + "/recipes.csv").starts_with("recipe,standard_id_r2,"));

  const Ran one =
      data.run(data.folder / "one", {"--methods", "ln_every", "--seeds", "1", "--standardise", "xy",
                                     "--ln-affine", "0", "--param", "ntk"});
  REQUIRE(one.code == 0);
  const auto row = json_of(data.folder / "one/summary.json")["rows"][0];
  const Ran uniform = data.run(data.folder / "uniform",
                               {"--methods", "ln_every", "--seeds", "1", "--weights", "uniform"});
  REQUIRE(uniform.code == 0);
  const auto other = json_of(data.folder / "uniform/summary.json")["rows"][0];
  int found = 0;
  for (const auto& recipe : summary["recipes"]) {
    const std::string name = recipe["name"];
    const bool same_as_one = name == "xy-plain-ntk";
    const bool same_as_uniform = name == "x-affine-standard-uniform";
    found += same_as_one + same_as_uniform;
    CHECK((recipe["ln_every_ood_r2"] == row["ood_r2"]) == same_as_one);
    CHECK((recipe["ln_every_ood_r2"] == other["ood_r2"]) == same_as_uniform);
  }
  CHECK(found == 2);
}

TEST_CASE("table1: bad input") {
  const Table1Data data;
  const auto refused = [&](const std::vector<std::string>& arguments, int code) {
    const Ran ran = run_keel(arguments);
    CHECK(ran.code == code);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    return ran.err;
  };
  const std::string out = data.folder / "out";
  CHECK(refused({"reproduce", "table1", "--out", out}, 2).find("10.24432/C5QW3H") !=
        std::string::npos);
  CHECK(refused({"reproduce", "table1", "--out", out, "--data", "/no/such"}, 1)
            .starts_with("keel: /no/such: no such file: wanted CASP.csv "));
  CHECK(refused({"reproduce", "fig1", "--out", out, "--data", data.csv}, 2) ==
        "keel: usage: --data is not for reproduce fig1\n");
  for (const char* name : {"fig2", "theory"})
    CHECK(refused({"reproduce", name, "--out", out, "--epochs", "3"}, 2) ==
          fmt::format("keel: usage: --epochs is not for reproduce {}\n", name));
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--param", "ntk"},
                                               {"--standardise", "x"},
                                               {"--weights", "normal"},
                                               {"--ln-affine", "1"}}) {
    std::vector<std::string> all = {"reproduce", "table1", "--out", out, "--recipes"};
    all.insert(all.end(), more.begin(), more.end());
    CHECK(refused(all, 2).find("--recipes") != std::string::npos);
  }
  CHECK(refused({"reproduce", "table1", "--out", out, "--data", data.csv, "--quiet", "--methods",
                 "ntk_ln_every", "--ntk-rows", "1"},
                1) == "keel: ridge: got 1 of 234 rows to choose a ridge by, wanted at least 2\n");
  CHECK(refused({"reproduce", "table1", "--out", out, "--methods", "lasso"}, 2).find("lasso") !=
        std::string::npos);
  if (!has_boosting()) {
    const Ran ran = data.run(out, {"--methods", "xgboost"});
    CHECK(ran.code == 1);
    CHECK(ran.err.find("libxgboost-dev") != std::string::npos);
  }
}

TEST_CASE("table1: intervals apart, and what the table is there to show") {
  CHECK(*apart({0.5, 0.1}, {0.7, 0.05}));
  CHECK_FALSE(*apart({0.5, 0.1}, {0.7, 0.15}));
  CHECK_FALSE(apart({0.5, NAN}, {0.7, 0.15}).has_value());
  const auto row = [](const char* method, double id, double ood) {
    Table1Row made;
    made.method = method;
    made.seeds = {0, 1};
    made.id_r2 = {id, id + 0.001};
    made.ood_r2 = {ood, ood + 0.001};
    return made;
  };
  const Json held = statements({row("standard", 0.58, 0.3), row("ln_every", 0.6, 0.5)});
  CHECK(held["ln_every_beats_standard_ood"] == true);
  CHECK(held["ln_every_beats_xgboost_ood"].is_null());
  CHECK(held["within_0.05_id"] == true);
  const Json broken = statements({row("standard", 0.5, 0.5), row("ln_every", 0.6, 0.3)});
  CHECK(broken["ln_every_beats_standard_ood"] == false);
  CHECK(broken["within_0.05_id"] == false);
}

}  // namespace
}  // namespace keel
