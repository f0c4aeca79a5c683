// keel regress and certify, as typed.
#include <cmath>

#include "../../core/random.h"
#include "../../experiments/table.h"
#include "helpers.h"

namespace keel {
namespace {

// y = sin(a) + b / 2 with a third feature that says nothing; 40 rows.
std::string wave_table(std::uint64_t seed, const char* header) {
  const auto draws = normal({40, 3}, {seed, 0}, 1, DType::f64).to_vector<double>();
  std::string text = header;
  for (std::size_t row = 0; row < 40; ++row) {
    const double a = draws[3 * row], b = draws[3 * row + 1], c = draws[3 * row + 2];
    text += fmt::format("{},{},{},{}\n", a, b, 50 + 10 * (std::sin(a) + b / 2), c);
  }
  return text;
}

struct WaveData {
  TemporaryFolder folder;
  std::string train = folder.file("train.csv", wave_table(1, "a,b,y,c\n"));
  std::string test = folder.file("test.csv", wave_table(2, ""));

  Ran run(const std::string& command, std::vector<std::string> more, const char* net = kNet) const {
    std::vector<std::string> arguments = {command, "--net",    net,           "--data",
                                          train,   "--target", "y",           "--device",
                                          "cpu",   "--out",    folder / "out"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  nlohmann::json summary() const { return json_of(folder / "out/summary.json"); }
};

TEST_CASE("regress: fits, predicts in y's own units, and echoes the ridge") {
  const WaveData data;
  for (const char* standardise : {"x", "xy"}) {
    CAPTURE(standardise);
    const Ran ran =
        data.run("regress", {"--test", data.test, "--standardise", standardise, "--ridge-relative",
                             "1e-3", "--save", data.folder / "p.csv"});
    CHECK(ran.code == 0);
    CHECK(ran.err.starts_with("note: " + data.train + " has a header and " + data.test +
                              " has none: columns are taken in their order\nmemory: "));
    CHECK(ran.out.find("RMSE") != std::string::npos);
    const auto summary = data.summary();
    CHECK(summary["ridge"].get<double>() ==
          doctest::Approx(1e-3 * summary["mean_diagonal"].get<double>()));
    CHECK(summary["residual"].get<double>() <= 1e-10);
    CHECK(summary["train_r2"].get<double>() > 0.95);
    CHECK(summary["test_r2"].get<double>() > 0.3);
    const Table predictions = read_table(data.folder / "p.csv"), test = read_table(data.test);
    CHECK(predictions.names == std::vector<std::string>{"row", "prediction", "std"});
    double squares = 0;
    for (std::int64_t row = 0; row < 40; ++row) {
      CHECK(predictions.at(row, 0) == row);
      CHECK(predictions.at(row, 2) > 0);
      squares += std::pow(predictions.at(row, 1) - test.at(row, 2), 2);
    }
    CHECK(summary["test_rmse"].get<double>() == doctest::Approx(std::sqrt(squares / 40)));
  }
}

TEST_CASE(
    "regress: float32 and float64 factors, infinite and empirical kernels agree with themselves") {
  const WaveData data;
  for (const char* mode : {"infinite", "empirical"}) {
    CAPTURE(mode);
    std::vector<double> rmse;
    for (const char* dtype : {"f32", "f64"}) {
      const Ran ran = data.run("regress", {"--test", data.test, "--mode", mode, "--ridge", "0.1",
                                           "--dtype", dtype, "--quiet", "--std", "none"});
      REQUIRE(ran.err == "");
      CHECK(ran.out == "");
      rmse.push_back(data.summary()["test_rmse"]);
    }
    CHECK(rmse[0] ==
          doctest::Approx(rmse[1]).epsilon(std::string(mode) == "infinite" ? 1e-8 : 1e-4));
  }
  const Ran ran = data.run("regress", {"--ridge", "0.1", "--std", "ensemble", "--save",
                                       data.folder / "p.csv", "--json"});
  CHECK(nlohmann::json::parse(ran.out)["train_rows"] == 40);
  CHECK(read_table(data.folder / "p.csv").rows == 40);
}

TEST_CASE("regress: repeated rows without a ridge are named; bad usage leaves nothing") {
  const TemporaryFolder folder;
  const std::string table = folder.file("t.csv", "a,y\n1,2\n3,1\n1,4\n2,2\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"regress",      "--net",    kNet,  "--data",
                                          table,          "--target", "y",   "--out",
                                          folder / "out", "--device", "cpu", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  Ran ran = run({"--save", folder / "p.csv"});
  CHECK(ran.code == 1);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  CHECK(ran.err.find("2 = 0") != std::string::npos);
  CHECK(ran.err.find("ridge") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "p.csv"));
  CHECK(run({"--ridge", "0.01"}).code == 0);
  CHECK(run({"--ridge", "0.01", "--ridge-relative", "0.1"}).code == 2);
  CHECK(run({"--ridge", "-1"}).code == 2);
  CHECK(run({"--ridge", "0.1", "--std", "ensemble", "--mode", "empirical"}).code == 2);
  ran = run_keel({"regress", "--net", "dense(4) relu dense(2)", "--data", table, "--target", "y",
                  "--out", folder / "out", "--device", "cpu"});
  CHECK(ran.err == "keel: net: got a net of 2 outputs, wanted dense(1) at its end\n");
}

TEST_CASE("regress: the spread of an ensemble, in blocks of rows, is that of each row alone") {
  const WaveData data;
  const std::string rows = wave_table(2, "");
  std::string many;
  for (int copy = 0; copy < 30; ++copy) many += rows;  // 1200, more than one block
  const auto deviations = [&](const std::string& test, std::vector<std::string> more) {
    more.insert(more.end(), {"--test", test, "--std", "ensemble", "--save", data.folder / "p.csv"});
    REQUIRE(data.run("regress", more).code == 0);
    const Table table = read_table(data.folder / "p.csv");
    std::vector<double> result;
    for (std::int64_t row = 0; row < table.rows; ++row) result.push_back(table.at(row, 2));
    return result;
  };
  const std::string file = data.folder.file("many.csv", many);
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--ridge", "0.01"}, std::vector<std::string>{"--time", "3"}}) {
    const std::vector<double> few = deviations(data.test, how), all = deviations(file, how);
    REQUIRE(all.size() == 30 * few.size());
    for (std::size_t row = 0; row < all.size(); ++row)
      CHECK(all[row] == doctest::Approx(few[row % few.size()]).epsilon(1e-6));
  }
}

TEST_CASE("regress: a prediction that double does not hold is refused, and nothing written") {
  const WaveData data;
  const std::string far = data.folder.file("far.csv", "a,b,y,c\n1,2,3,4\n1e308,-1e308,1,1e308\n");
  const Ran ran = data.run("regress", {"--mode", "empirical", "--ridge-relative", "1e-3", "--std",
                                       "none", "--test", far, "--save", data.folder / "p.csv"});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("far.csv: the prediction of row 1 (from 0) is ") != std::string::npos);
  CHECK(!std::filesystem::exists(data.folder / "p.csv"));
}

TEST_CASE("certify: of a target that never changes, and one too small for squares") {
  const WaveData data;
  std::string constant = "a,y\n", tiny = "a,y\n";
  for (int row = 0; row < 100; ++row) {
    constant += fmt::format("{},2.5\n", std::sin(row));
    tiny += fmt::format("{},{}e-170\n", std::sin(row), row);
  }
  const auto certify = [&](const std::string& table, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"certify", "--net", "dense(64) layernorm gelu dense(64) gelu dense(1)", "--data",
                 table, "--target", "y", "--out", data.folder / "out", "--device", "cpu"});
    return run_keel(more);
  };
  const Ran ran = certify(data.folder.file("constant.csv", constant), {"--ridge", "1e-9"});
  CHECK(ran.code == 0);
  CHECK(data.summary()["bound"].get<double>() >= data.summary()["largest_found"].get<double>());
  CHECK(certify(data.folder.file("tiny.csv", tiny), {"--ridge-relative", "1e-2"})
            .err.find("in size, wanted 0 or 1e-100 at the least: scale it") != std::string::npos);
}

TEST_CASE("regress: training that stops early tends to the solve") {
  const WaveData data;
  const auto r2_of = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--quiet", "--save", data.folder / "p.csv"});
    const Ran ran = data.run("regress", more);
    REQUIRE(ran.err == "");
    return data.summary()["train_r2"].get<double>();
  };
  CHECK(r2_of({"--standardise", "xy", "--time", "0"}) == doctest::Approx(0));
  CHECK(read_table(data.folder / "p.csv").names.back() == "std");
  CHECK(data.summary()["dtype"] == "f64");  // whatever --dtype says of a factor
  const double early = r2_of({"--standardise", "xy", "--time", "1"});
  const double late = r2_of({"--standardise", "xy", "--time", "100"});
  CHECK(early > 0.1);
  CHECK(late > early);
  CHECK(r2_of({"--time", "1e9"}) > 0.999999);
  // Gradient descent with small steps is nearly the flow: 1000 epochs of 2 lr / 40 a step.
  const double descent = r2_of({"--standardise", "xy", "--epochs", "1000", "--lr", "0.02"});
  CHECK(descent == doctest::Approx(early).epsilon(0.01));
  const Ran ran = data.run("regress", {"--epochs", "10", "--lr", "1e6"});
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with(
      "keel: regress: got --lr 1000000, with which gradient descent diverges: "));
  // What it says is allowed, is.
  const std::string most = ran.err.substr(ran.err.rfind(' ') + 1);
  CHECK(data.run("regress", {"--epochs", "10", "--lr", most.substr(0, most.size() - 1)}).code == 0);
  CHECK(data.run("regress", {"--epochs", "10"}).code == 2);
  CHECK(data.run("regress", {"--time", "1", "--ridge", "0.1"}).code == 2);
  CHECK(data.run("regress", {"--time", "1", "--std", "gp"}).code == 2);
}

TEST_CASE("certify: a bound that holds with LN, and a way past any number without") {
  const WaveData data;
  for (const char* standardise : {"x", "xy"}) {
    CAPTURE(standardise);
    Ran ran = data.run("certify", {"--ridge", "0.01", "--standardise", standardise, "--quiet"});
    REQUIRE(ran.err == "");
    auto summary = data.summary();
    CHECK(summary["bounded"] == true);
    const double bound = summary["bound"], found = summary["largest_found"];
    CHECK(found > 0);
    CHECK(found <= bound);
    CHECK(summary["bound_tight"].get<double>() <= bound);
    CHECK(bound <= summary["bound_loose"].get<double>());
    CHECK(summary["data_fit_r2"].get<double>() > 0.9);
    CHECK(summary["largest_found_at"]["x"].size() == 3);
    CHECK(!summary.contains("exceeded_at"));

    ran = data.run("certify",
                   {"--ridge", "0.01", "--standardise", standardise, "--quiet", "--exceed", "1e12"},
                   kNoNorm);
    REQUIRE(ran.err == "");
    summary = data.summary();
    CHECK(summary["bounded"] == false);
    CHECK(summary["bound"].is_null());
    CHECK(summary["growth_exponent"].get<double>() == doctest::Approx(2));
    CHECK(summary["exceed"].get<double>() == doctest::Approx(1e12));
    CHECK(summary["exceeded_by"].get<double>() > 1e12);
  }
  // Behind a tanh or sigmoid there is no proof, which is no proof that there is no bound.
  Ran ran;
  for (const char* net :
       {"dense(8) tanh dense(8) layernorm dense(1)", "dense(8) sigmoid layernorm dense(1)"}) {
    ran = data.run("certify", {"--ridge", "0.01"}, net);
    CHECK(ran.out.find("Theta(x, x) grows like |x|") != std::string::npos);
    CHECK(ran.out.find("nothing is proved") != std::string::npos);
    CHECK(data.summary()["growth_exponent"] == 1);
    CHECK(data.summary()["bound"].is_null());
  }
  ran = data.run("certify", {"--ridge", "0.01"});
  CHECK(ran.out.find("certificate: |f(x)| is at most") != std::string::npos);
  // Of one value there is no R^2, and it is not unbounded.
  const Ran flat = run_keel({"certify", "--net", kNet, "--data",
                             data.folder.file("flat.csv", "a,y\n1,2\n3,2\n"), "--target", "y",
                             "--ridge", "0.1", "--out", data.folder / "out", "--device", "cpu"});
  CHECK(flat.code == 0);
  CHECK(flat.out.find("unbounded") == std::string::npos);
}

TEST_CASE("certify: of nets of finite width nothing is proved, and nothing is said to be") {
  const WaveData data;
  Ran ran = data.run("certify", {"--mode", "empirical", "--ridge", "0.1", "--farthest", "100",
                                 "--directions", "16", "--steps", "5"});
  CHECK(ran.code == 0);
  CHECK(ran.out.find("nothing is proved") != std::string::npos);
  CHECK(ran.out.find("certificate:") == std::string::npos);
  auto summary = data.summary();
  CHECK(summary["bounded"] == false);
  CHECK(summary["bound"].is_null());
  CHECK(summary["supremum"].is_null());
  CHECK(summary["region"] == 100);
  CHECK(summary["supremum_found"].get<double>() > 0);
  CHECK(summary["supremum_found_at_distance"].get<double>() <= 100 * (1 + 1e-12));
  CHECK(summary["largest_found"].get<double>() <= summary["bound_if_supremum_found"].get<double>());
  CHECK(summary["largest_found_at"]["distance"].get<double>() <= 100 * (1 + 1e-12));
  CHECK(!summary.contains("exceed"));

  // Without a norm, or with a tanh before it, Theta(x, x) grows; there, where x is along the plane
  // of a unit.
  for (const std::string net :
       {"dense(8) relu dense(1)", "dense(8) tanh dense(8) layernorm relu dense(1)",
        "dense(8) sigmoid dense(8) layernorm softplus dense(1)"}) {
    CAPTURE(net);
    ran = data.run("certify",
                   {"--mode", "empirical", "--ridge", "0.1", "--directions", "16", "--steps", "5"},
                   net.c_str());
    CHECK(ran.code == 0);
    CHECK(ran.out.find("unbounded") != std::string::npos);
    summary = data.summary();
    CHECK(summary["bounded"] == false);
    CHECK(summary["growth_exponent"] == 2);
    CHECK(!summary.contains("bound_if_supremum_found"));
    if (net == "dense(8) relu dense(1)")
      CHECK(summary["exceeded_by"].get<double>() > summary["exceed"].get<double>());
  }
}

}  // namespace
}  // namespace keel
