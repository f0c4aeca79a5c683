#include <cmath>
#include <filesystem>
#include <map>

#include "../../core/random.h"
#include "../../experiments/boosting.h"
#include "../../experiments/ridge_choice.h"
#include "../../experiments/standardiser.h"
#include "../../nn/streams.h"
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

TEST_CASE("uci: its numbers are those of train and regress on the same rows") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sets");
  std::filesystem::create_directory(folder / "sets/one");
  const auto draws = normal({90, 3}, {3, 0}, 1, DType::f64).to_vector<double>();
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < draws.size(); i += 3)
    lines.push_back(fmt::format("{} {} {}\n", draws[i], draws[i + 1],
                                20 + 3 * std::sin(draws[i]) + draws[i + 1] + 0.3 * draws[i + 2]));
  folder.file("sets/one/data.txt", fmt::format("{}", fmt::join(lines, "")));
  folder.file("sets/one/index_features.txt", "0\n1\n");
  folder.file("sets/one/index_target.txt", "2\n");
  REQUIRE(run_keel({"reproduce", "uci", "--data", folder / "sets", "--seeds", "1", "--seed", "11",
                    "--epochs", "60", "--device", "cpu", "--out", folder / "out", "--quiet"})
              .code == 0);
  std::map<std::string, double> rmse;
  const auto summary = json_of(folder / "out/summary.json");
  for (const auto& row : summary["rows"]) rmse[row["method"]] = row["rmse"];

  // The tenth of the rows that seed 11 puts aside, and the others.
  std::string parts[2];
  const std::vector<std::int64_t> order = permutation(90, {11, streams::split()});
  for (std::size_t i = 0; i < order.size(); ++i)
    parts[i < 9] += lines[static_cast<std::size_t>(order[i])];
  folder.file("train.txt", parts[0]);
  folder.file("test.txt", parts[1]);
  const auto rmse_of = [&](std::vector<std::string> arguments, const std::string& net) {
    for (const std::string& more :
         {std::string("--net"), net, std::string("--data"), folder / "train.txt",
          std::string("--test"), folder / "test.txt", std::string("--target"), std::string("2"),
          std::string("--standardise"), std::string("xy"), std::string("--out"), folder / "by_hand",
          std::string("--device"), std::string("cpu"), std::string("--quiet")})
      arguments.push_back(more);
    const Ran ran = run_keel(arguments);
    REQUIRE(ran.err == "");
    return json_of(folder / "by_hand/summary.json")["test_rmse"].get<double>();
  };
  const std::string standard = "dense(128) relu dense(128) relu dense(1)";
  const std::string every = "dense(128) layernorm relu dense(128) layernorm relu dense(1)";
  for (const auto& [method, net] : {std::pair("standard", standard), {"ln_every", every}})
    CHECK(rmse.at(method) ==
          doctest::Approx(rmse_of({"train", "--seed", "11", "--epochs", "60"}, net)).epsilon(1e-6));
  for (const auto& [method, net] : {std::pair("ntk_standard", standard), {"ntk_ln_every", every}}) {
    // One of the ridges that are tried, and the one that held-out training rows want.
    const Examples training = training_examples(read_table(folder / "train.txt"), "2");
    const Standardiser units(Standardise::xy, training);
    InfiniteKernelOptions options;
    options.first_sigma_w2 = 1;
    const double ridge =
        choose_ridge(std::make_shared<InfiniteKernel>(net, 2, options),
                     units.inputs(training, Device::cpu()), units.targets(training, Device::cpu()))
            .relative;
    CHECK(rmse.at(method) == doctest::Approx(rmse_of({"regress", "--first-sigma-w2", "1",
                                                      "--ridge-relative", fmt::format("{}", ridge)},
                                                     net))
                                 .epsilon(1e-6));
  }
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
