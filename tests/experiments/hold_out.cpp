// --hold-out of train and regress, as typed, and what certify makes of it.
#include "../../experiments/hold_out.h"

#include <algorithm>
#include <cmath>

#include "../../experiments/table.h"
#include "../../nn/safetensors.h"
#include "helpers.h"

namespace keel {
namespace {

constexpr const char* kSmall = "dense(8) layernorm relu dense(1)";

struct HeldOut {
  HeldOut() {
    for (int i = 0; i < 40; ++i)
      lines.push_back(fmt::format("{},{},{}\n", 0.1 * i - 2, (7 * i) % 11,
                                  30 + std::sin(0.1 * i) + 0.2 * ((7 * i) % 11)));
    table = folder.file("t.csv", of_lines([](std::size_t) { return true; }));
  }
  template <class F>
  std::string of_lines(F wanted) const {
    std::string text = "a,b,y\n";
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (wanted(i)) text += lines[i];
    return text;
  }
  Ran run(const std::string& command, const std::string& data,
          std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        command,         "--net", kSmall,     "--data", data,    "--target",  "y",
        "--standardise", "xy",    "--device", "cpu",    "--out", folder / "o"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  nlohmann::json summary() const { return json_of(folder / "o/summary.json"); }

  TemporaryFolder folder;
  std::vector<std::string> lines;
  std::string table;
};

TEST_CASE("hold-out: as two tables of the rows that it says") {
  const HeldOut data;
  for (const char* command : {"train", "regress"}) {
    CAPTURE(command);
    const std::string held = data.folder / "held.csv", apart = data.folder / "apart.csv";
    std::vector<std::string> more = {"--seed", "5"};
    if (command == std::string("train"))
      more.insert(more.end(), {"--epochs", "30", "--seeds", "2"});
    else
      more.insert(more.end(), {"--ridge", "0.1"});
    const auto with = [&](std::vector<std::string> last) {
      std::vector<std::string> all = more;
      all.insert(all.end(), last.begin(), last.end());
      return all;
    };
    REQUIRE(data.run(command, data.table, with({"--hold-out", "0.3", "--save", held})).code == 0);
    const nlohmann::json said = data.summary();
    CHECK(said["train_rows"] == 28);
    CHECK(said["test_rows"] == 12);
    const Table predictions = read_table(held);
    REQUIRE(predictions.rows == 12);
    std::vector<bool> is_held(data.lines.size(), false);
    for (std::int64_t row = 0; row < 12; ++row) {
      const auto at = static_cast<std::size_t>(predictions.at(row, 0));
      CHECK((row == 0 || predictions.at(row, 0) > predictions.at(row - 1, 0)));
      is_held.at(at) = true;
    }
    CHECK(std::count(is_held.begin(), is_held.begin() + 12, true) < 12);  // drawn, not the first
    const std::string training =
        data.folder.file("train.csv", data.of_lines([&](std::size_t i) { return !is_held[i]; }));
    const std::string test =
        data.folder.file("test.csv", data.of_lines([&](std::size_t i) { return is_held[i]; }));
    REQUIRE(data.run(command, training, with({"--test", test, "--save", apart})).code == 0);
    const nlohmann::json again = data.summary();
    for (const char* name : {"train_rmse", "train_r2", "test_rmse", "test_r2"})
      CHECK(said[name] == again[name]);
    const Table other = read_table(apart);
    REQUIRE(other.cols == predictions.cols);
    for (std::int64_t row = 0; row < 12; ++row)
      for (std::int64_t col = 1; col < other.cols; ++col)
        CHECK(predictions.at(row, col) == other.at(row, col));
    // Another seed, other rows.
    more[1] = "6";
    REQUIRE(data.run(command, data.table, with({"--hold-out", "12", "--save", apart})).code == 0);
    const Table others = read_table(apart);
    REQUIRE(others.rows == 12);
    bool differs = false;
    for (std::int64_t row = 0; row < 12; ++row)
      differs = differs || others.at(row, 0) != predictions.at(row, 0);
    CHECK(differs);
  }
}

TEST_CASE("hold-out: certify judges by the same rows") {
  const HeldOut data;
  const std::string weights = data.folder / "w.safetensors";
  REQUIRE(
      data.run("train", data.table,
               {"--epochs", "300", "--lr", "0.01", "--hold-out", "10", "--save-weights", weights})
          .code == 0);
  const nlohmann::json trained = data.summary();
  const auto certify = [&](const std::string& table) {
    return run_keel({"certify", "--mode", "trained", "--weights", weights, "--data", table,
                     "--target", "y", "--directions", "2", "--steps", "1", "--boxes", "0", "--out",
                     data.folder / "o"});
  };
  REQUIRE(certify(data.table).err == "");
  const nlohmann::json said = data.summary();
  CHECK(said["data_fit_r2"].get<double>() ==
        doctest::Approx(trained["train_r2"].get<double>()).epsilon(1e-4));
  CHECK(said["held_out_r2"].get<double>() ==
        doctest::Approx(trained["test_r2"].get<double>()).epsilon(1e-4));
  CHECK(said["held_out_r2"] != said["data_fit_r2"]);
  CHECK(said["train_rows"] == 30);
  const std::string fewer =
      data.folder.file("fewer.csv", data.of_lines([](std::size_t i) { return i > 0; }));
  CHECK(certify(fewer).err == fmt::format("keel: {}: got 39 rows, wanted the 40 of which 10 were "
                                          "held out from the net of {}\n",
                                          fewer, weights));
  SafeTensors file = read_safetensors(weights);
  for (const char* text : {"[]", "{\"held_out\":10}", "{\"held_out\":40,\"rows\":40,\"seed\":0}",
                           "{\"held_out\":-1,\"rows\":40,\"seed\":0}",
                           "{\"held_out\":\"a\",\"rows\":40,\"seed\":0}"}) {
    file.metadata[kHeldOutKey] = text;
    write_safetensors(weights, file);
    CAPTURE(text);
    CHECK(certify(data.table).err.find("wanted how many rows of how many, and a seed") !=
          std::string::npos);
  }
}

TEST_CASE("hold-out: what leaves nothing is refused") {
  const HeldOut data;
  const auto refused = [&](const char* hold_out, int code, const char* why) {
    for (const char* command : {"train", "regress"}) {
      const Ran ran = data.run(command, data.table, {"--hold-out", hold_out});
      CHECK(ran.code == code);
      CHECK_MESSAGE(ran.err.find(why) != std::string::npos, ran.err);
    }
  };
  for (const char* hold_out : {"0", "-1", "nan", "some"}) refused(hold_out, 2, "wanted a number");
  refused("1.5", 2, "got '1.5', wanted a number of rows, or a share of them below 1");
  for (const char* hold_out : {"40", "1e300", "0.01"})
    refused(hold_out, 1, "wanted at least one held out and one to learn from");
  CHECK(data.run("train", data.table, {"--hold-out", "2", "--test", data.table}).code == 2);
}

}  // namespace
}  // namespace keel
