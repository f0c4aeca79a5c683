// What options of the commands do, beside the library called by hand: in other units, of other
// batches, steps and variances.
#include <cmath>

#include "../../core/random.h"
#include "../../experiments/standardiser.h"
#include "../../experiments/table.h"
#include "../../nn/trainer.h"
#include "../../ntk/empirical_kernel.h"
#include "../../ntk/infinite_kernel.h"
#include "helpers.h"

namespace keel {
namespace {

constexpr std::int64_t kRows = 24;

// y = scale (5 + sin(a) + b / 2).
struct OracleData {
  explicit OracleData(double scale = 1) {
    const auto draws = normal({kRows, 2}, {3, 0}, 1, DType::f64).to_vector<double>();
    std::string text = "a,b,y\n";
    for (std::size_t row = 0; row < kRows; ++row) {
      const double a = draws[2 * row], b = draws[2 * row + 1];
      text += fmt::format("{},{},{}\n", a, b, scale * (5 + std::sin(a) + b / 2));
    }
    table = folder.file("t.csv", text);
    examples = training_examples(read_table(table), "y");
  }

  nlohmann::json summary_of(const std::string& command, std::vector<std::string> more,
                            const char* net = kNet) const {
    std::vector<std::string> arguments = {command,        "--net",    net,   "--data",
                                          table,          "--target", "y",   "--out",
                                          folder / "out", "--device", "cpu", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_keel(arguments);
    REQUIRE(ran.err == "");
    return json_of(folder / "out/summary.json");
  }

  std::vector<double> column_of(const std::string& file, std::int64_t column) const {
    const Table read = read_table(file);
    std::vector<double> result;
    for (std::int64_t row = 0; row < read.rows; ++row) result.push_back(read.at(row, column));
    return result;
  }

  Tensor x() const { return Tensor::from(examples.x, {kRows, 2}); }
  Tensor y() const { return Tensor::from(examples.y, {kRows, 1}); }

  TemporaryFolder folder;
  std::string table;
  Examples examples;
};

TEST_CASE("train: --batch, --lr and --epochs are the trainer's") {
  const OracleData data;
  for (const std::int64_t batch : {0, 7}) {
    CAPTURE(batch);
    const std::string saved = data.folder / "p.csv";
    data.summary_of("train", {"--batch", std::to_string(batch), "--lr", "0.01", "--epochs", "20",
                              "--seed", "5", "--standardise", "none", "--save", saved});
    Net net(kNet, 2, {.seed = 5});
    TrainOptions options;
    options.epochs = 20;
    options.batch = batch;
    options.optimiser = AdamOptions{0.01};
    const Tensor x = data.x().to(DType::f32), y = data.y().to(DType::f32);
    train(net, x, y, options);
    CHECK(data.column_of(saved, 1) == net.predict(x).to_vector<double>());
  }
}

TEST_CASE("regress: one step of gradient descent is 2 lr / n times Theta y") {
  const OracleData data;
  const std::string saved = data.folder / "p.csv";
  data.summary_of("regress", {"--epochs", "1", "--lr", "0.03", "--standardise", "none", "--std",
                              "none", "--save", saved});
  const InfiniteKernel kernel(kNet, 2);
  const Tensor theta = Tensor::empty({kRows, kRows}, DType::f64);
  const auto points = kernel.points(data.x());
  kernel.gram(*points, *points, theta);
  const std::vector<double> entries = theta.to_vector<double>(), got = data.column_of(saved, 1);
  for (std::size_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < kRows; ++j) sum += entries[i * kRows + j] * data.examples.y[j];
    CHECK(got[i] == doctest::Approx(2 * 0.03 / kRows * sum).epsilon(1e-9));
  }
}

TEST_CASE("regress: the std column is in y's own units") {
  const OracleData data;
  const Standardiser units(Standardise::xy, data.examples);
  for (const char* deviation : {"gp", "ensemble"}) {
    CAPTURE(deviation);
    const auto deviations = [&](const char* standardise) {
      const std::string saved = data.folder / "p.csv";
      data.summary_of("regress", {"--ridge", "0.1", "--standardise", standardise, "--std",
                                  deviation, "--save", saved});
      return data.column_of(saved, 2);
    };
    const std::vector<double> own = deviations("x"), scaled = deviations("xy");
    // What the kernel says of the inputs alone, times y's deviation where y is standardised.
    for (std::size_t row = 0; row < kRows; ++row)
      CHECK(scaled[row] == doctest::Approx(own[row] * units.y_scale()).epsilon(1e-6));
  }
}

TEST_CASE("regress: --first-sigma-w2 and the others are the nets' of an empirical kernel") {
  const OracleData data;
  const nlohmann::json summary =
      data.summary_of("regress", {"--mode", "empirical", "--ridge", "0.1", "--standardise", "none",
                                  "--dtype", "f64", "--sigma-w2", "1.5", "--first-sigma-w2", "3",
                                  "--sigma-b2", "0.2", "--seed", "4", "--std", "none"});
  NetOptions options;
  options.parameterisation = Parameterisation::ntk;
  options.seed = 4;
  options.dtype = DType::f64;
  options.sigma_w2 = 1.5;
  options.first_sigma_w2 = 3;
  options.sigma_b2 = 0.2;
  const EmpiricalKernel kernel(Net(kNet, 2, options));
  double mean = 0;
  for (double value : kernel.diag(*kernel.points(data.x())).to_vector<double>())
    mean += value / kRows;
  CHECK(summary["mean_diagonal"].get<double>() == doctest::Approx(mean).epsilon(1e-12));
}

TEST_CASE("certify: what it finds is the prediction there, in y's own units") {
  const OracleData data;
  const nlohmann::json found = data.summary_of(
      "certify", {"--ridge", "0.1", "--standardise", "xy", "--directions", "8", "--steps", "3"});
  const auto at = found["largest_found_at"]["x"].get<std::vector<double>>();
  const std::string there = data.folder.file("x.csv", fmt::format("a,b\n{},{}\n", at[0], at[1]));
  const std::string saved = data.folder / "p.csv";
  data.summary_of("regress",
                  {"--ridge", "0.1", "--standardise", "xy", "--test", there, "--save", saved});
  const Standardiser units(Standardise::xy, data.examples);
  CHECK(std::abs(data.column_of(saved, 1)[0] - units.y_mean()) ==
        doctest::Approx(found["largest_found"].get<double>()).epsilon(1e-6));
}

TEST_CASE("certify: bounds and finds scale with y") {
  const OracleData data(1), tenfold(10);
  for (const char* mode : {"infinite", "empirical"}) {
    CAPTURE(mode);
    const auto summary = [&](const OracleData& of) {
      return of.summary_of("certify", {"--mode", mode, "--ridge", "0.1", "--standardise", "xy",
                                       "--dtype", "f64", "--directions", "4", "--steps", "2"});
    };
    const nlohmann::json one = summary(data), ten = summary(tenfold);
    int compared = 0;
    for (const char* key : {"bound", "bound_tight", "bound_loose", "bound_if_supremum_found",
                            "largest_found", "centre"}) {
      if (!one.contains(key) || one[key].is_null()) continue;
      CAPTURE(key);
      CHECK(ten[key].get<double>() == doctest::Approx(10 * one[key].get<double>()).epsilon(1e-6));
      ++compared;
    }
    CHECK(compared >= 2);
  }
}

TEST_CASE("certify: --steps and --directions are the search's") {
  const OracleData data;
  const auto evaluations = [&](const char* directions, const char* steps) {
    return data
        .summary_of("certify",
                    {"--ridge", "0.1", "--directions", directions, "--steps", steps})["evaluations"]
        .get<std::int64_t>();
  };
  // At 33 distances along two axes, kRows starts and the random directions, both ways; the origin.
  const auto rays = [](std::int64_t directions) { return 1 + 33 * 2 * (2 + kRows + directions); };
  CHECK(evaluations("0", "0") == rays(0));
  CHECK(evaluations("9", "0") == rays(9));
  // 32 climbers, and the best point once more, look at four neighbours and one step each time.
  CHECK(evaluations("9", "3") == rays(9) + 33 * 3 * 5);
}

}  // namespace
}  // namespace keel
