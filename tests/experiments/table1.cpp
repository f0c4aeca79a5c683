#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "../../core/random.h"
#include "../../experiments/boosting.h"
#include "../../experiments/table.h"
#include "../../experiments/table1_report.h"
#include "../../nn/safetensors.h"
#include "../sanitized.h"
#include "helpers.h"

namespace keel {
namespace {

// 300 proteins of ten columns, 40 of them large; RMSD depends on the first two features. `repeats`
// rows at the end are exact copies of rows at the beginning, with other targets.
std::string small_data(int repeats = 0) {
  const auto draws = normal({300, 10}, {5, 0}).to_vector<double>();
  std::string text = "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\n";
  for (int row = 0; row < 300 + repeats; ++row) {
    const double* z = draws.data() + row % 300 * 10;
    const double area =
        row % 300 < 260 ? 10000 + 2500 * std::tanh(z[0]) : 21000 + 900 * std::tanh(z[0]);
    const double target = 8 + 3 * std::tanh(z[0]) + z[1] + (row >= 300);
    text += fmt::format("{},{}", target, area);
    for (int f = 1; f < 9; ++f) text += fmt::format(",{}", z[f]);
    text += "\n";
  }
  return text;
}

struct Data {
  TemporaryFolder folder;
  std::string csv = folder.file("CASP.csv", small_data());

  Ran run(const std::string& out, const std::vector<std::string>& more,
          const std::string& epochs = "30") const {
    std::vector<std::string> arguments = {
        "reproduce", "table1",    "--data",   csv,   "--out",    out,   "--seed",
        "3",         "--no-plot", "--device", "cpu", "--epochs", epochs};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
};

std::string default_methods() {
  std::string all;
  for (const std::string& method : table1_methods())
    if (method != "xgboost" || has_boosting()) all += (all.empty() ? "" : ",") + method;
  return all;
}

TEST_CASE("table1: every method runs end to end and is judged") {
  const Data data;
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
      CHECK(details["bound"].get<double>() > details["largest_found"].get<double>());
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

// Long enough to be stopped in the middle.
constexpr const char* kLong = test::kSanitized ? "100" : "1000";

std::vector<std::string> three_seeds(bool resume) {
  std::vector<std::string> arguments = {
      "--seeds", "3", "--methods",
      has_boosting() ? "ln_every,xgboost,ntk_ln_first" : "ln_every,ntk_ln_first"};
  if (resume) arguments.push_back("--resume");
  return arguments;
}

/// The same table in one go, once for all cases.
struct Whole {
  Data data;
  std::string out = data.folder / "whole";
  Whole() { REQUIRE(data.run(out, three_seeds(false), kLong).code == 0); }
};

const Whole& whole() {
  static const Whole once;
  return once;
}

void check_same_as_whole(const std::string& out) {
  for (const char* name :
       {"table1.csv", "seeds.csv", "predictions_ln_every.csv", "predictions_ntk_ln_first.csv"})
    CHECK(content_of(out + "/" + name) == content_of(whole().out + "/" + name));
}

TEST_CASE("table1: stopped in the middle of a net, it resumes to the same bytes") {
  const Data data;
  const std::string parts = data.folder / "parts";
  std::thread ctrl_c([&] {  // once the first of three nets is done
    while (!std::filesystem::exists(parts + "/members/ln_every_x-affine-standard_3.safetensors"))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::raise(SIGINT);
  });
  const Ran stopped = data.run(parts, three_seeds(false), kLong);
  ctrl_c.join();
  CHECK(stopped.code == 130);
  CHECK(stopped.out == "");
  CHECK(stopped.err.find("\nkeel: stopped; to go on: keel reproduce table1 --data ") !=
        std::string::npos);
  CHECK(stopped.err.ends_with(" --resume\n"));
  CHECK_FALSE(std::filesystem::exists(parts + "/table1.csv"));

  const Ran resumed = data.run(parts, three_seeds(true), kLong);
  CHECK(resumed.code == 0);
  check_same_as_whole(parts);
  for (const auto& file : std::filesystem::directory_iterator(parts + "/members"))
    CHECK(file.path().extension() == ".safetensors");  // no leftovers
}

TEST_CASE("table1: killed between members, it resumes to the same bytes; the others are kept") {
  const Data& data = whole().data;
  const std::string parts = data.folder / "parts";
  // What kill -9 leaves: finished members, nothing else, and a temporary file.
  std::filesystem::create_directories(parts + "/members");
  const std::string first = "/members/ln_every_x-affine-standard_3.safetensors";
  std::filesystem::copy_file(whole().out + first, parts + first);
  std::ofstream(parts + first + ".tmp") << "half a file";
  const Ran resumed = data.run(parts, three_seeds(true), kLong);
  CHECK(resumed.code == 0);
  CHECK(resumed.err.find(has_boosting() ? "table1: 6 members left" : "table1: 3 members left") !=
        std::string::npos);
  check_same_as_whole(parts);

  // A finished table again, from its members alone.
  const std::string before = content_of(parts + "/table1.csv");
  const Ran again = data.run(parts, three_seeds(true), kLong);
  CHECK(again.err.find("table1: 0 members left") != std::string::npos);
  CHECK(content_of(parts + "/table1.csv") == before);

  // Another number of epochs is another table: its members are not to be mixed with these.
  const Ran refused = data.run(parts, three_seeds(true), "999");
  CHECK(refused.code == 1);
  CHECK(refused.err.find("is of 'ln_every on data ") != std::string::npos);

  // Without --resume a new run sets the old members aside.
  std::vector<std::string> fresh = {"--seeds", "1", "--methods", "standard"};
  CHECK(data.run(parts, fresh).code == 0);
  CHECK(std::filesystem::exists(parts + "/members.old" + first.substr(8)));
}

TEST_CASE("table1: a finished member's file that is damaged is refused by one line") {
  const Data data;
  const std::string out = data.folder / "out";
  const std::vector<std::string> arguments = {"--seeds",      "1",           "--methods",
                                              "ntk_ln_first", "--ntk-ridge", "0.1",
                                              "--ntk-rows",   "50",          "--resume"};
  REQUIRE(data.run(out, arguments).code == 0);
  const std::string path = out + "/members/ntk_ln_first_3.safetensors";
  const SafeTensors sound = read_safetensors(path);
  const auto refused = [&](auto change) {
    SafeTensors content = sound;
    change(content);
    write_safetensors(path, content);
    const Ran ran = data.run(out, arguments);
    CHECK(ran.code == 1);
    const std::string last = "keel: table1: " + path + ": ";
    const std::size_t at = ran.err.find(last);
    REQUIRE(at != std::string::npos);
    CHECK(ran.err.find('\n', at) == ran.err.size() - 1);
    return ran.err.substr(at + last.size());
  };
  const auto with_details = [&](const char* details) {
    return refused([&](SafeTensors& content) { content.metadata["details"] = details; });
  };
  for (const char* details : {"", "{\"bound\"", "[1]", "{}"})
    CHECK(with_details(details) == "its details are no JSON object with a bound\n");
  const auto with_tensor = [&](const std::string& name, const Tensor& other) {
    return refused([&](SafeTensors& content) {
      for (auto& [key, tensor] : content.tensors)
        if (key == name) tensor = other;
    });
  };
  CHECK(with_tensor("id", Tensor::zeros({25}, DType::f64)) ==
        "'id' is [25], wanted 26 finite numbers\n");
  CHECK(with_tensor("ood", Tensor::full({40}, std::nan(""), DType::f64)) ==
        "'ood' is [40], wanted 40 finite numbers\n");
  CHECK(with_tensor("cost", Tensor::full({2}, -1, DType::f64)) == "got cost -1 s and -1 bytes\n");

  SafeTensors tiny = sound;  // std::stod takes no denormal number
  tiny.metadata["details"] = R"({"bound":1e-310})";
  write_safetensors(path, tiny);
  CHECK(data.run(out, arguments).code == 0);
}

TEST_CASE("table1: repeated rows without a ridge are named") {
  Data data;
  data.csv = data.folder.file("repeated.csv", small_data(60));
  const Ran ran = data.run(data.folder / "out", {"--methods", "ntk_ln_first", "--ntk-ridge", "0"});
  CHECK(ran.code == 1);
  CHECK(ran.out == "");
  INFO(ran.err);
  CHECK(ran.err.find("repeat") != std::string::npos);
  CHECK(ran.err.find("nan") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(data.folder / "out/table1.csv"));
}

TEST_CASE("table1: fewer rows and more seeds for the exact regressions") {
  const Data data;
  const std::string out = data.folder / "out";
  const Ran ran = data.run(out, {"--methods", "ntk_ln_every", "--seeds", "3", "--ntk-seeds", "2",
                                 "--ntk-rows", "100", "--ntk-ridge", "0.1"});
  REQUIRE(ran.code == 0);
  const auto row = json_of(out + "/summary.json")["rows"][0];
  CHECK(row["seeds"] == std::vector<int>{3, 4});
  CHECK(row["details"][1]["train_rows"] == 100);
  CHECK(row["details"][1]["ridge_relative"] == 0.1);
  CHECK(row["ood_r2_ci"].is_number());
}

TEST_CASE("table1: recipes, one by one and as a grid") {
  const Data data;
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
  const Data data;
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
