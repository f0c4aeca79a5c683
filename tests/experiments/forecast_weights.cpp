// keel forecast --weights: nets of a file, and no training.
#include <string>
#include <vector>

#include "../../nn/safetensors.h"
#include "../gpu.h"
#include "forecast_data.h"

namespace keel {
namespace {

// Two trained nets, and what `keel forecast` wrote when it trained them.
struct Kept {
  Kept() {
    REQUIRE(data.run({"--steps", "5", "--seeds", "2", "--save-weights", weights}, "before").code ==
            0);
  }
  Ran again(const std::vector<std::string>& more, const std::string& out = "after",
            const std::string& table = "") const {
    std::vector<std::string> arguments = {
        "forecast", "--data",          table.empty() ? data.table : table,
        "--target", "level",           "--weights",
        weights,    "--device",        "cpu",
        "--out",    data.folder / out, "--no-plot"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  ForecastData data;
  std::string weights = data.folder / "t.safetensors";
};

TEST_CASE("forecast of weights: says what it said when it had trained them") {
  const Kept kept;
  const Ran ran = kept.again({"--hold-out", "20", "--ahead", "4"});
  CHECK(ran.err ==  // after five steps they know it no better than another
        "note: R^2 is below 0: the nets may have been trained on another series than --target\n");
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("; 2 transformers of " + kept.weights + "\n") != std::string::npos);
  CHECK(kept.data.csv("after") == kept.data.csv("before"));
  const auto before = kept.data.summary("before"), after = kept.data.summary("after");
  for (const char* name :
       {"interval", "largest_found", "one_step", "rollout", "seeds", "length", "width", "heads",
        "hidden", "blocks", "norms", "norm", "held_out_rows"}) {
    INFO(name);
    CHECK(after[name] == before[name]);
  }
  CHECK(after["weights"] == kept.weights);
  for (const char* name : {"train_rows", "train_rmse", "steps", "saved_weights"}) {
    INFO(name);
    CHECK(before.contains(name));
    CHECK(!after.contains(name));
  }
}

// The table goes on where it ended: its units are still those of the training.
TEST_CASE("forecast of weights: rows that came later change no unit, and are gone on from") {
  const Kept kept;
  const std::string longer =
      kept.data.folder.file("longer.csv", series_text() + "120,1000\n121,1000\n");
  const Ran of_longer = kept.again({"--hold-out", "2", "--ahead", "0"}, "after", longer);
  REQUIRE(of_longer.code == 0);
  CHECK(of_longer.err ==  // 1000 twice: there is no R^2
        "");
  REQUIRE(kept.again({"--hold-out", "0", "--ahead", "2"}, "ahead").code == 0);
  const auto after = rows_of(kept.data.csv("after")), ahead = rows_of(kept.data.csv("ahead"));
  REQUIRE(ahead.size() == 2);
  for (int row : {kRows, kRows + 1})
    CHECK(after.at({"rollout", row}).numbers == ahead.at({"forecast", row}).numbers);
  CHECK(kept.data.summary("after")["centre"] == kept.data.summary("before")["centre"]);
}

TEST_CASE("forecast of weights: a value is enough to go on from, none is not") {
  const Kept kept;
  const std::string one = kept.data.folder.file("one.csv", "level\n40\n"),
                    two = kept.data.folder.file("two.csv", "level\n40\n41\n");
  CHECK(kept.again({"--ahead", "3"}, "after", one).code == 0);
  CHECK(rows_of(kept.data.csv("after")).size() == 3);
  CHECK(kept.again({"--hold-out", "1", "--ahead", "0"}, "after", two).code == 0);
  const Ran ran = kept.again({"--hold-out", "1"}, "none", one);
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: " + one +
                       ": got 1 rows, of which 1 are held out, wanted at least 1 to go on from\n");
}

TEST_CASE("forecast of weights: rows that the nets were trained on judge nothing") {
  const Kept kept;
  REQUIRE(kept.again({}).code == 0);
  const auto trained = kept.data.summary("before")["train_rows"].get<std::int64_t>();
  REQUIRE(trained < kRows - kRows / 10);
  CHECK(kept.data.summary("after")["held_out_rows"] == kRows / 10);
  const Ran more = kept.again({"--hold-out", fmt::format("{}", kRows - trained + 3)});
  REQUIRE(more.code == 0);
  CHECK(
      more.err.starts_with(fmt::format("note: of the {} rows held out, the nets of {} were "
                                       "trained on 3\n",
                                       kRows - trained + 3, kept.weights)));
  // All of it: nothing is left to judge by, unless the table has grown, or is another one.
  REQUIRE(run_keel({"forecast",
                    "--data",
                    kept.data.table,
                    "--target",
                    "level",
                    "--hold-out",
                    "0",
                    "--length",
                    "6",
                    "--width",
                    "8",
                    "--heads",
                    "2",
                    "--hidden",
                    "16",
                    "--steps",
                    "5",
                    "--device",
                    "cpu",
                    "--out",
                    kept.data.folder / "all",
                    "--no-plot",
                    "--save-weights",
                    kept.weights})
              .code == 0);
  REQUIRE(kept.again({}).code == 0);
  CHECK(kept.data.summary("after")["held_out_rows"] == 0);
  const std::string grown =
      kept.data.folder.file("grown.csv", series_text() + "120,3\n121,5\n122,4\n");
  REQUIRE(kept.again({}, "after", grown).code == 0);
  CHECK(kept.data.summary("after")["held_out_rows"] == 3);
  std::string other = series_text();
  other.replace(other.rfind(','), std::string::npos, ",77\n");
  REQUIRE(kept.again({}, "after", kept.data.folder.file("other.csv", other)).code == 0);
  CHECK(kept.data.summary("after")["held_out_rows"] == kRows / 10);
}

TEST_CASE("forecast of weights: refusals are one line, and leave nothing") {
  const Kept kept;
  const auto said = [&](const std::vector<std::string>& more, int code) {
    const Ran ran = kept.again(more, "refused");
    CHECK(ran.code == code);
    CHECK(!std::filesystem::exists(kept.data.folder / "refused"));
    return ran.err;
  };
  for (const std::vector<std::string>& of_training :
       std::vector<std::vector<std::string>>{{"--length", "7"},
                                             {"--steps", "3"},
                                             {"--seeds", "1"},
                                             {"--seed", "1"},
                                             {"--no-layernorm"}})
    CHECK(said(of_training, 2) == "keel: usage: " + of_training[0] +
                                      " is of a training: the nets of --weights are trained\n");
  SafeTensors other;
  other.tensors.emplace_back("0.weight", Tensor::zeros({1, 1}));
  write_safetensors(kept.weights, other);
  CHECK(said({}, 1) == "keel: load_transformer: " + kept.weights +
                           ": got no 'transformer.length' in its metadata, wanted a file of "
                           "save_transformer(), or of keel forecast --save-weights\n");
  CHECK(said({"--weights", kept.data.table}, 2).starts_with("keel: usage: --weights"));
}

TEST_CASE("forecast of weights: the GPU says what the CPU says") {
  if (!test::gpu_here("forecast of weights")) return;
  const Kept kept;
  REQUIRE(kept.again({"--ahead", "2"}, "here").code == 0);
  std::vector<std::string> arguments = {"forecast",
                                        "--data",
                                        kept.data.table,
                                        "--target",
                                        "level",
                                        "--weights",
                                        kept.weights,
                                        "--device",
                                        "cuda",
                                        "--out",
                                        kept.data.folder / "there",
                                        "--no-plot",
                                        "--ahead",
                                        "2"};
  REQUIRE(run_keel(arguments).code == 0);
  const auto here = rows_of(kept.data.csv("here")), there = rows_of(kept.data.csv("there"));
  REQUIRE(here.size() == there.size());
  for (const auto& [key, row] : here)
    for (std::size_t i = 0; i < row.numbers.size(); ++i)
      CHECK(there.at(key).numbers[i] == doctest::Approx(row.numbers[i]).epsilon(1e-6));
}

}  // namespace
}  // namespace keel
