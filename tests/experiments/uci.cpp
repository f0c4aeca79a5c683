#include <cmath>
#include <filesystem>

#include "../../core/random.h"
#include "../../experiments/boosting.h"
#include "../../experiments/ridge_choice.h"
#include "../../ntk/infinite_kernel.h"
#include "../sanitized.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("ridge: noise wants a larger one than a smooth function does") {
  const Tensor x = normal({120, 2}, {1, 0}, 1, DType::f64);
  const std::vector<double> at = x.to_vector<double>();
  const std::vector<double> noise = normal({120, 1}, {2, 0}, 1, DType::f64).to_vector<double>();
  std::vector<double> smooth;
  for (std::size_t i = 0; i < at.size(); i += 2) smooth.push_back(at[i] - 0.5 * at[i + 1]);
  const auto kernel =
      std::make_shared<InfiniteKernel>("dense(8) layernorm relu dense(8) relu dense(1)", 2);
  const RidgeChoice of_noise = choose_ridge(kernel, x, Tensor::from(noise, {120, 1}));
  const RidgeChoice of_smooth = choose_ridge(kernel, x, Tensor::from(smooth, {120, 1}));
  CHECK(of_noise.relative > 10 * of_smooth.relative);
  REQUIRE(of_noise.tried.size() == 9);
  for (const Json& one : of_noise.tried)
    CHECK(one["rmse"].get<double>() >= [&] {
      for (const Json& other : of_noise.tried)
        if (other["ridge_relative"] == of_noise.relative) return other["rmse"].get<double>();
      return -1.0;
    }());
  CHECK(message_of<Error>([&] { choose_ridge(kernel, x.slice(0, 2), x.slice(0, 2)); }) ==
        "ridge: got 2 rows to choose a ridge by, wanted at least 3");
}

TEST_CASE("uci: every set by every method, from folders of columns") {
  const TemporaryFolder folder;
  for (const char* name : {"first", "noise", "second"}) {
    std::filesystem::create_directory(folder / name);
    const bool noise = std::string(name) == "noise";
    std::string text;
    const auto draws = normal({60, 3}, {7, 0}, 1, DType::f64).to_vector<double>();
    for (std::size_t i = 0; i < draws.size(); i += 3)  // target first, one column unused
      text += fmt::format("{} {} 5 {}\n",
                          100 + (noise ? draws[i + 2] : draws[i] + std::sin(draws[i + 1])),
                          draws[i], draws[i + 1]);
    folder.file(std::string(name) + "/data.txt", text);
    folder.file(std::string(name) + "/index_features.txt", "1\n3\n");
    folder.file(std::string(name) + "/index_target.txt", "0\n");
  }
  const Ran ran =
      run_keel({"reproduce", "uci", "--data", folder.str(), "--seeds", test::kSanitized ? "1" : "2",
                "--epochs", "400", "--device", "cpu", "--out", folder / "out"});
  CHECK(ran.code == 0);
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["rows"].size() == 3 * (has_boosting() ? 5 : 4));
  for (const auto& row : summary["rows"]) {
    CAPTURE(row["method"].get<std::string>());
    CHECK(row["features"] == 2);
    // Of a split each: the interval of two that are the same would be 0.
    CHECK((test::kSanitized || row["rmse_ci"].get<double>() > 0));
    // What no feature tells of, a method knows only of rows that it has seen.
    if (row["dataset"] == "noise") {
      CHECK(row["rmse"].get<double>() > 0.5);
      continue;
    }
    CHECK(row["rmse"].get<double>() < 0.9);  // the target's deviation is 1.2
    CHECK(row["rmse"].get<double>() > 0);
  }
  CHECK(ran.out.find("infinite, LN every") != std::string::npos);
  CHECK(std::filesystem::exists(folder / "out/uci.csv"));
}

TEST_CASE("uci: what is missing is named") {
  const TemporaryFolder folder;
  Ran ran = run_keel({"reproduce", "uci", "--out", folder / "out"});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("index_target.txt") != std::string::npos);
  ran = run_keel({"reproduce", "uci", "--data", folder.str(), "--out", folder / "out"});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("wanted a folder of folders") != std::string::npos);
  std::filesystem::create_directory(folder / "set");
  std::string rows;
  for (int row = 0; row < 10; ++row) rows += fmt::format("{} {}\n", row, row);
  folder.file("set/data.txt", rows);
  folder.file("set/index_features.txt", "2\n");
  folder.file("set/index_target.txt", "1\n");
  ran = run_keel({"reproduce", "uci", "--data", folder.str(), "--out", folder / "out"});
  CHECK(ran.err.find("got column 2, wanted one from 0 to 1") != std::string::npos);
  for (const char* no_column : {"1e+300", "-1", "0.5"}) {
    folder.file("set/index_features.txt", no_column);
    ran = run_keel({"reproduce", "uci", "--data", folder.str(), "--out", folder / "out"});
    CHECK(ran.err.find(fmt::format("got column {}, wanted one from 0 to 1", no_column)) !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace keel
