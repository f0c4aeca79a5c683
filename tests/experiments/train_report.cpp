// What keel train says of its training beside its predictions.
#include "../../experiments/train_report.h"

#include <cmath>

#include "../../experiments/standardiser.h"
#include "../../experiments/table.h"
#include "../../nn/net.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("train: each epoch's loss, in the target's own units") {
  const TemporaryFolder folder;
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{},{},{}\n", 0.1 * i - 2, (7 * i) % 11, 30 + 0.5 * i - (7 * i) % 11);
  const std::string table = folder.file("t.csv", text), spec = "dense(16) relu dense(1)";
  const auto with = [&](std::vector<std::string> more, const char* name) {
    more.insert(more.begin(), {"train", "--net", spec, "--data", table, "--target", "y",
                               "--history", folder / name, "--standardise", "xy", "--out",
                               folder / "out", "--device", "cpu", "--quiet"});
    REQUIRE(run_keel(more).code == 0);
    return read_table(folder / name);
  };
  const Table two = with({"--epochs", "3", "--seeds", "2", "--seed", "4"}, "two.csv");
  CHECK(two.names == std::vector<std::string>{"epoch", "mse_seed_4", "mse_seed_5"});
  REQUIRE(two.rows == 3);
  CHECK(two.at(2, 0) == 3);
  // The first is of the nets as they are drawn: what they say of the rows, beside the rows.
  const Table rows = read_table(table);
  const Examples examples = training_examples(rows, "y");
  const Standardiser units(Standardise::xy, examples);
  for (std::uint64_t seed : {4, 5}) {
    const Net net(spec, 2, {.seed = seed});
    const std::vector<double> said = units.y_in_own_units(
        net.predict(units.inputs(examples, Device::cpu()).to(DType::f32)).to_vector<double>());
    double squares = 0;
    for (std::size_t row = 0; row < said.size(); ++row)
      squares += std::pow(said[row] - examples.y[row], 2);
    CHECK(two.at(0, static_cast<std::int64_t>(seed - 3)) ==
          doctest::Approx(squares / static_cast<double>(said.size())).epsilon(1e-5));
  }
  const Table one = with({"--epochs", "2", "--seed", "5"}, "one.csv");
  CHECK(one.names == std::vector<std::string>{"epoch", "mse"});
  for (std::int64_t epoch : {0, 1}) CHECK(one.at(epoch, 1) == two.at(epoch, 2));
  CHECK(one.at(1, 1) < one.at(0, 1));
}

}  // namespace
}  // namespace keel
