// keel forecast: what it writes is what its own nets say, nothing held out is looked at, and
// nothing leaves what was proved.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../experiments/forecast_run.h"
#include "../../experiments/table.h"
#include "../../nn/safetensors.h"
#include "../../nn/transformer_weights.h"
#include "../gpu.h"
#include "../sanitized.h"
#include "forecast_data.h"

namespace keel {
namespace {

TEST_CASE("forecast: learns a wave, is judged by rows it was not trained on, and writes all") {
  const ForecastData data;
  const bool shorter = test::kSanitized;
  const Ran ran = data.run({"--steps", shorter ? "20" : "400", "--lr", "0.01"});
  REQUIRE(ran.err == "");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("whatever the sequence, no prediction is outside") != std::string::npos);
  CHECK(ran.out.find("value_before") != std::string::npos);
  const auto summary = data.summary();
  CHECK(summary["rows"] == kRows);
  CHECK(summary["train_rows"] == kRows - kHeldOut);
  CHECK(summary["held_out_rows"] == kHeldOut);
  CHECK(summary["norms"] == "embedding");
  CHECK(summary["norm"] == "layernorm");
  const double one_step = summary["one_step"]["rmse"];
  if (!shorter) {
    CHECK(summary["one_step"]["r2"].get<double>() > 0.8);
    CHECK(one_step < summary["value_before"]["rmse"].get<double>() / 2);
  }

  const std::string csv = data.csv();
  CHECK(csv.starts_with("row,kind,true,prediction\n100,one_step,"));
  const auto rows = rows_of(csv);
  REQUIRE(rows.size() == 2 * kHeldOut + 4);
  const Table table = read_table(data.table);
  double squares = 0, before = 0;
  for (int i = kRows - kHeldOut; i < kRows; ++i) {
    const Row& row = rows.at({"one_step", i});
    CHECK(std::stod(row.wanted) == table.at(i, 1));
    CHECK(rows.at({"rollout", i}).wanted == row.wanted);
    squares += std::pow(row.numbers[0] - table.at(i, 1), 2);
    before += std::pow(table.at(i - 1, 1) - table.at(i, 1), 2);
  }
  CHECK(std::sqrt(squares / kHeldOut) == doctest::Approx(one_step));
  CHECK(std::sqrt(before / kHeldOut) ==
        doctest::Approx(summary["value_before"]["rmse"].get<double>()));
  for (int i = kRows; i < kRows + 4; ++i) CHECK(rows.at({"forecast", i}).wanted.empty());
}

// The saved net, told by hand what it saw.
TEST_CASE("forecast: what it writes is what the nets that it saves predict") {
  const ForecastData data;
  const std::string weights = data.folder / "t.safetensors";
  REQUIRE(
      data.run({"--steps", "5", "--seeds", "2", "--seed", "3", "--save-weights", weights}).code ==
      0);
  const Table table = read_table(data.table);
  const SafeTensors file = read_safetensors(weights);
  const double centre = std::stod(file.metadata.at("keel.centre")),
               scale = std::stod(file.metadata.at("keel.scale"));
  double mean = 0, square = 0;
  for (int i = 0; i < kRows - kHeldOut; ++i) mean += table.at(i, 1) / (kRows - kHeldOut);
  for (int i = 0; i < kRows - kHeldOut; ++i)
    square += std::pow(table.at(i, 1) - mean, 2) / (kRows - kHeldOut);
  CHECK(centre == doctest::Approx(mean).epsilon(1e-12));
  CHECK(scale == doctest::Approx(std::sqrt(square)).epsilon(1e-12));

  const Transformer both = load_transformer(weights);
  CHECK(both.options().seeds == std::vector<std::uint64_t>{3, 4});
  const auto rows = rows_of(data.csv());
  for (std::int64_t s = 0; s < 2; ++s) {
    const Transformer net = both.member(s).to(DType::f64);
    const auto next = [&](const std::vector<double>& seen) {
      std::vector<double> x;
      for (std::size_t i = seen.size() - kLength; i < seen.size(); ++i)
        x.push_back((seen[i] - centre) / scale);
      return centre + scale * net.predict(Tensor::from(x, {1, kLength})).to_vector<double>().back();
    };
    const auto written = [&](const char* kind, int row) {
      return rows.at({kind, row}).numbers[static_cast<std::size_t>(2 + s)];
    };
    std::vector<double> truth, alone;
    for (int i = 0; i < kRows; ++i) {
      if (i >= kRows - kHeldOut) {
        CHECK(written("one_step", i) == doctest::Approx(next(truth)).epsilon(1e-12));
        alone.push_back(next(alone));
        CHECK(written("rollout", i) == doctest::Approx(alone.back()).epsilon(1e-12));
      } else {
        alone.push_back(table.at(i, 1));
      }
      truth.push_back(table.at(i, 1));
    }
    for (int i = kRows; i < kRows + 4; ++i) {
      truth.push_back(next(truth));
      CHECK(written("forecast", i) == doctest::Approx(truth.back()).epsilon(1e-12));
    }
  }
  const Row& first = rows.at({"forecast", kRows});
  CHECK(first.numbers[0] == doctest::Approx((first.numbers[2] + first.numbers[3]) / 2));
  CHECK(first.numbers[1] ==
        doctest::Approx(std::abs(first.numbers[2] - first.numbers[3]) / std::sqrt(2)));
}

TEST_CASE("forecast: a seed's net is the same beside others") {
  const ForecastData data;
  REQUIRE(data.run({"--steps", "5", "--seeds", "3", "--seed", "1"}, "three").code == 0);
  REQUIRE(data.run({"--steps", "5", "--seed", "2"}, "one").code == 0);
  const auto three = rows_of(data.csv("three")), one = rows_of(data.csv("one"));
  REQUIRE(three.size() == one.size());
  for (const auto& [key, row] : one) CHECK(three.at(key).numbers[3] == row.numbers[0]);
}

TEST_CASE("forecast: nothing held out is looked at before it is judged") {
  const ForecastData data;
  REQUIRE(data.run({"--steps", "5"}, "as_it_was").code == 0);
  data.folder.file("level.csv", series_text(1000));
  REQUIRE(data.run({"--steps", "5"}, "otherwise").code == 0);
  for (const char* name : {"train_rmse", "interval", "largest_found", "centre"})
    CHECK(data.summary("as_it_was")[name] == data.summary("otherwise")[name]);
  const auto before = rows_of(data.csv("as_it_was")), after = rows_of(data.csv("otherwise"));
  for (int i = kRows - kHeldOut; i < kRows; ++i)
    CHECK(before.at({"rollout", i}).numbers == after.at({"rollout", i}).numbers);
  const int first = kRows - kHeldOut;
  CHECK(before.at({"one_step", first}).numbers == after.at({"one_step", first}).numbers);
  CHECK(before.at({"one_step", first + 1}).numbers != after.at({"one_step", first + 1}).numbers);
}

TEST_CASE("forecast: with a Layer Norm nothing leaves what was proved, without it anything goes") {
  const ForecastData data;
  REQUIRE(data.run({"--steps", "5", "--seeds", "2"}, "with").code == 0);
  const Ran without = data.run({"--steps", "5", "--no-layernorm"}, "without");
  REQUIRE(without.code == 0);
  CHECK(without.out.find("none: no norm that nothing passes by") != std::string::npos);
  const auto bounded = data.summary("with"), free = data.summary("without");
  const double low = bounded["interval"][0], high = bounded["interval"][1];
  const double centre = bounded["centre"], bound = bounded["bound"];
  CHECK(bound == doctest::Approx(std::max(centre - low, high - centre)));
  const double found = bounded["largest_found"];
  CHECK(found <= bound);
  CHECK(found > bound / 1000);
  REQUIRE(bounded["interval_by_seed"].size() == 2);
  for (const auto& one : bounded["interval_by_seed"]) {
    CHECK(one[0].get<double>() >= low);
    CHECK(one[1].get<double>() <= high);
  }
  for (const auto& [key, row] : rows_of(data.csv("with")))
    for (double value : {row.numbers[0], row.numbers[2], row.numbers[3]}) {
      CHECK(value >= low);
      CHECK(value <= high);
    }
  CHECK(!bounded.contains("exceeded_at"));
  CHECK(bounded["largest_found_at"]["sequence"].size() == kLength);

  CHECK(free["bounded"] == false);
  CHECK(free["bound"].is_null());
  CHECK(free["interval"].is_null());
  CHECK(free["largest_found"].get<double>() > 1000 * found);
  CHECK(free["exceeded_by"].get<double>() >= 1000 * free["largest_found"].get<double>());
  CHECK(free["exceeded_at"]["sequence"].size() == kLength);
}

TEST_CASE("forecast: norms stand where they are asked for, and what is proved is of those") {
  const ForecastData data;
  const std::string weights = data.folder / "t.safetensors";
  const auto interval = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "5", "--save-weights", weights});
    const Ran ran = data.run(more);
    CHECK(ran.err == "");
    REQUIRE(ran.code == 0);
    return data.summary()["interval"];
  };
  const auto embedding = interval({}), last = interval({"--norms", "last,blocks"});
  CHECK(data.summary()["norms"] == "blocks,last");
  const double size = embedding[1].get<double>() - embedding[0].get<double>();
  CHECK(last[1].get<double>() - last[0].get<double>() < size);
  CHECK(load_transformer(weights).options().norms == norms_at("blocks,last"));
  CHECK(interval({"--norms", "blocks,last", "--rmsnorm"}) != last);
  CHECK(data.summary()["norm"] == "rmsnorm");
  CHECK_FALSE(load_transformer(weights).options().norms.centred);
  CHECK(interval({"--norms", "embedding"}) == embedding);
  CHECK(interval({"--norms", "blocks"}).is_null());
  CHECK(data.summary()["exceeded_by"].get<double>() > 1e6);
  CHECK(interval({"--norms", "none"}).is_null());
}

TEST_CASE("forecast: series that hurt") {
  const ForecastData data;
  const auto with = [&](const std::string& text, std::vector<std::string> more) {
    data.folder.file("level.csv", text);
    more.insert(more.end(), {"--steps", "2"});
    return data.run(more);
  };
  std::string constant = "level\n";
  for (int i = 0; i < 40; ++i) constant += "7\n";
  CHECK(with(constant, {}).code == 0);
  CHECK(data.summary()["one_step"]["r2"].is_null());
  CHECK(std::isfinite(data.summary()["bound"].get<double>()));
  // As few rows as can be trained on, and none to judge by or to predict.
  std::string few = "level\n1\n2\n3\n4\n5\n6\n7\n";
  CHECK(with(few + std::string("8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n"
                               "25\n26\n27\n"),
             {})
            .code == 0);
  Ran ran = with(few, {});
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: " + data.table +
                       ": got 7 rows, of which 20 are held out, wanted at least 7 to train on: "
                       "--length and one more\n");
  std::string far = "level\n";
  for (int i = 0; i < 40; ++i) far += fmt::format("{}\n", i == 39 ? 1e300 : i * 1.0);
  CHECK(with(far, {}).code == 0);  // held out
  far = "level\n";
  for (int i = 0; i < 40; ++i) far += fmt::format("{}e299\n", i);
  CHECK(with(far, {}).code == 0);
  CHECK(data.summary()["interval"][1].get<double>() > 1e300);
}

TEST_CASE("forecast: refusals are one line, and leave nothing") {
  const ForecastData data;
  const auto said = [&](std::vector<std::string> more, int code) {
    const Ran ran = data.run(more, "refused");
    CHECK(ran.code == code);
    CHECK(ran.out == "");
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    const auto names = data.folder.names();
    CHECK(std::find(names.begin(), names.end(), "refused") == names.end());
    return ran.err;
  };
  CHECK(said({"--seeds", "0"}, 2) ==
        "keel: usage: --seeds: got '0', wanted a whole number from 1 to 1000\n");
  for (const char* none : {"--no-layernorm", "--norms=none"})
    CHECK(said({"--rmsnorm", none}, 2) ==
          "keel: usage: got --rmsnorm and no norms, wanted one of them\n");
  CHECK(said({"--save-weights", data.table}, 1).find("level.csv") != std::string::npos);
  CHECK(said({"--steps", "2000000", "--lr", "1e30"}, 1)
            .find("at step 100 of the training of seed 0") != std::string::npos);
  CHECK(said({"--steps", "3", "--lr", "1e30"}, 1).find("at step 3 of the training of seed 0") !=
        std::string::npos);
  const Ran ran = run_keel({"forecast", "--data", data.table, "--target", "level", "--width", "9",
                            "--heads", "2", "--out", data.folder / "refused"});
  CHECK(ran.code == 2);
  CHECK(ran.err == "keel: usage: got --width 9 and --heads 2, wanted a multiple of the heads\n");
}

TEST_CASE("forecast: a picture where Python has matplotlib, and a note where it has not") {
  const ForecastData data;
  for (const char* held_out : {"20", "1", "0"}) {
    const Ran ran =
        run_keel({"forecast",   "--data",   data.table, "--target", "level",
                  "--hold-out", held_out,   "--length", "5",        "--width",
                  "4",          "--heads",  "1",        "--hidden", "4",
                  "--steps",    "2",        "--ahead",  "3",        "--seeds",
                  "2",          "--device", "cpu",      "--out",    data.folder / "out"});
    CHECK(ran.code == 0);
    const auto pictures = data.summary()["pictures"];
    CHECK(pictures.empty() == (ran.err.find("python3-matplotlib") != std::string::npos));
    for (const auto& picture : pictures) CHECK(std::filesystem::exists(picture.get<std::string>()));
  }
}

TEST_CASE("forecast: the CPU and the GPU agree") {
  if (!test::gpu_here("forecast: the CPU and the GPU agree")) return;
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(3 + std::sin(0.5 * i));
  const Series series(values, 50);
  ForecastOptions options;
  options.net = {.length = 5, .width = 8, .heads = 2, .hidden = 8, .blocks = 1};
  options.seeds = 2;
  options.steps = 3;
  options.batch = 4;
  options.ahead = 3;
  const Forecast here = run_forecast(series, options);
  options.net.device = Device::cuda();
  const Forecast there = run_forecast(series, options);
  REQUIRE(there.members.size() == 2);
  CHECK(there.net.flat().device() == Device::cuda());
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
  };
  for (std::size_t s = 0; s < 2; ++s) {
    const ForecastMember &a = here.members[s], &b = there.members[s];
    close({a.loss, a.bound.proved->low, a.bound.proved->high, a.bound.attack.largest.value},
          {b.loss, b.bound.proved->low, b.bound.proved->high, b.bound.attack.largest.value});
    close(a.one_step, b.one_step);
    close(a.rollout, b.rollout);
    close(a.ahead, b.ahead);
  }
}

}  // namespace
}  // namespace keel
