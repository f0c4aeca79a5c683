// keel certify --mode trained of a transformer's file, as typed.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "../../experiments/table.h"
#include "../../nn/safetensors.h"
#include "../../nn/transformer_weights.h"
#include "forecast_data.h"

namespace keel {
namespace {

// A series, and what `keel forecast` made of it: seeds 3 and 4.
struct Saved {
  explicit Saved(std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--steps", "5", "--seeds", "2", "--seed", "3", "--save-weights", weights});
    REQUIRE(data.run(more, "forecast").code == 0);
  }
  Ran certify(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {
        "certify",  "--mode", "trained",      "--weights", weights,   "--out", out,
        "--device", "cpu",    "--directions", "8",         "--steps", "5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  nlohmann::json summary() const { return json_of(out + "/summary.json"); }

  /// The largest |f - centre| of that seed's net at all places, in the series' units.
  double largest(const nlohmann::json& place) const {
    const auto [centre, scale] = units();
    std::vector<double> x;
    for (double value : place["sequence"]) x.push_back((value - centre) / scale);
    const Transformer both = load_transformer(weights);
    const Transformer net = both.member(place["seed"].get<std::int64_t>() - 3).to(DType::f64);
    double most = 0;
    for (double value : net.predict(Tensor::from(x, {1, kLength})).to_vector<double>())
      most = std::max(most, std::abs(value) * scale);
    return most;
  }
  std::pair<double, double> units() const {
    const auto notes = read_safetensors(weights).metadata;
    return {std::stod(notes.at("keel.centre")), std::stod(notes.at("keel.scale"))};
  }

  ForecastData data;
  std::string weights = data.folder / "t.safetensors", out = data.folder / "certify";
};

TEST_CASE("certify transformer: proves of a file what forecast proved of its nets") {
  const Saved saved;
  const Ran ran = saved.certify({});
  CHECK(ran.err == "");
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("whatever the sequence, no prediction is outside") != std::string::npos);
  const auto here = saved.summary(), there = saved.data.summary("forecast");
  for (const char* name : {"interval", "interval_by_seed", "bound", "centre", "seeds", "length"}) {
    INFO(name);
    CHECK(here[name] == there[name]);
  }
  const double found = here["largest_found"];
  CHECK(found <= here["bound"].get<double>());
  CHECK(saved.largest(here["largest_found_at"]) == doctest::Approx(found).epsilon(1e-9));
  CHECK(!here.contains("one_step"));
}

TEST_CASE("certify transformer: one net of the file's") {
  const Saved saved;
  REQUIRE(saved.certify({}).code == 0);
  const auto all = saved.summary();
  for (int member : {0, 1}) {
    REQUIRE(saved.certify({"--member", std::to_string(member)}).code == 0);
    const auto one = saved.summary();
    CHECK(one["member"] == member);
    CHECK(one["seeds"] == std::vector<int>{3 + member});
    CHECK(one["interval"] == all["interval_by_seed"][static_cast<std::size_t>(member)]);
  }
  const Ran beyond = saved.certify({"--member", "2"});
  CHECK(beyond.code == 1);
  CHECK(beyond.err ==
        "keel: weights: " + saved.weights + ": got member 2, wanted one of its 2, from 0\n");
  CHECK(saved.certify({"--ignore", "a"}).code == 2);
}

TEST_CASE("certify transformer: with a series, how well each row is predicted from those before") {
  const Saved saved;
  const Ran ran = saved.certify({"--data", saved.data.table, "--target", "level"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("mean prediction") != std::string::npos);
  const auto [centre, scale] = saved.units();
  const Table table = read_table(saved.data.table);
  const Transformer both = load_transformer(saved.weights);
  double rmse = 0;
  for (std::int64_t s = 0; s < 2; ++s) {
    const Transformer net = both.member(s).to(DType::f64);
    double squares = 0;
    for (std::int64_t row = 1; row < kRows; ++row) {
      const std::int64_t seen = std::min<std::int64_t>(row, kLength);
      std::vector<double> x(kLength, 1e3);  // what lies behind is not looked at
      for (std::int64_t i = 0; i < seen; ++i)
        x[static_cast<std::size_t>(i)] = (table.at(row - seen + i, 1) - centre) / scale;
      const double predicted = net.predict(Tensor::from(x, {1, kLength}))
                                   .to_vector<double>()[static_cast<std::size_t>(seen - 1)];
      squares += std::pow(centre + scale * predicted - table.at(row, 1), 2);
    }
    rmse += std::sqrt(squares / (kRows - 1)) / 2;
  }
  CHECK(saved.summary()["one_step"]["rmse"].get<double>() == doctest::Approx(rmse).epsilon(1e-9));
  CHECK(saved.summary()["rows"] == kRows);
}

TEST_CASE("certify transformer: series that are short, or another") {
  const Saved saved;
  for (const auto& [text, judged] : {std::pair{"level\n3\n", false}, {"level\n3\n4\n5\n", true}}) {
    const std::string table = saved.data.folder.file("short.csv", text);
    CHECK(saved.certify({"--data", table, "--target", "level"}).code == 0);
    CHECK(saved.summary().contains("one_step") == judged);
  }
  const Ran ran = saved.certify({"--data", saved.data.table, "--target", "when"});
  CHECK(ran.code == 0);
  CHECK(ran.err ==
        "note: R^2 is below 0: the nets may have been trained on another series than --target\n");
}

TEST_CASE("certify transformer: without a Layer Norm, a sequence that passes any number") {
  const Saved saved({"--no-layernorm"});
  const Ran ran = saved.certify({"--exceed", "1e20"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("none: no norm that nothing passes by") != std::string::npos);
  const auto summary = saved.summary();
  CHECK(summary["bound"].is_null());
  const double passed = summary["exceeded_by"];
  CHECK(passed >= 1e20);
  CHECK(saved.largest(summary["exceeded_at"]) == doctest::Approx(passed).epsilon(1e-6));
}

TEST_CASE("certify transformer: with a Layer Norm it does not") {
  const Saved saved;
  const Ran ran = saved.certify({"--exceed", "1e20"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("not in the direction of that") != std::string::npos);
  CHECK(!saved.summary().contains("exceeded_by"));
  CHECK(saved.summary()["exceed"].get<double>() == doctest::Approx(1e20));
}

TEST_CASE("certify transformer: a file that names no units, or none that are any") {
  const Saved saved;
  SafeTensors file = read_safetensors(saved.weights);
  const auto with = [&](const std::string& centre, const std::string& scale) {
    file.metadata["keel.centre"] = centre;
    file.metadata["keel.scale"] = scale;
    write_safetensors(saved.weights, file);
    return saved.certify({});
  };
  for (const auto& [centre, scale, said] :
       {std::array{"x", "1", "got 'x' for keel.centre, wanted a number"},
        {"1e999", "1", "got '1e999' for keel.centre, wanted a number"},
        {"0", "0", "got 0 for keel.scale, wanted more than 0"},
        {"0", "-2", "got -2 for keel.scale, wanted more than 0"},
        {"0", "1e-320", "got 1e-320 for keel.scale, wanted more than 0"}}) {
    const Ran ran = with(centre, scale);
    CHECK(ran.code == 1);
    CHECK(ran.err == "keel: transformer: " + saved.weights + ": " + said + "\n");
  }
  const auto interval = [&] { return saved.summary()["interval"].get<std::vector<double>>(); };
  REQUIRE(with("0", "1").code == 0);
  const std::vector<double> own = interval();
  const Ran wide = with("1e308", "1e308");
  CHECK(wide.code == 1);
  CHECK(wide.err.find(" deviations of 1e+308 about 1e+308, wanted one within the number range") !=
        std::string::npos);
  file.metadata.erase("keel.centre");
  write_safetensors(saved.weights, file);
  CHECK(saved.certify({}).err ==
        "keel: transformer: " + saved.weights +
            ": got keel.scale alone of keel.centre and keel.scale, wanted both or none\n");
  file.metadata.erase("keel.scale");
  write_safetensors(saved.weights, file);
  const Ran ran = saved.certify({});
  CHECK(ran.code == 0);
  CHECK(ran.err == "note: " + saved.weights +
                       " names no keel.centre and keel.scale: these are the nets' own units\n");
  CHECK(interval() == own);
}

TEST_CASE("certify transformer: predictions that are not finite are refused") {
  const Saved saved({"--no-layernorm"});
  SafeTensors file = read_safetensors(saved.weights);
  file.metadata["keel.centre"] = "-1.7e308";  // from which the table is farther than numbers go
  write_safetensors(saved.weights, file);
  const std::string table = saved.data.folder.file("far.csv", "level\n1e308\n1e308\n1e308\n");
  const Ran ran = saved.certify({"--data", table, "--target", "level"});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("for row 1 (from 0) one step ahead, seed ") != std::string::npos);
}

TEST_CASE("certify transformer: refusals are one line") {
  const Saved saved;
  CHECK(saved.certify({"--farthest", "1e13"})
            .err.starts_with(
                "keel: usage: got --farthest 1e+13, wanted at most 1e+12 of a transformer: "));
  CHECK(saved.certify({"--farthest", "1e46"}).err ==
        "keel: usage: --farthest: got '1e46', wanted at most 1e+45\n");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--net", "dense(1)"}, {"--modules", "a b"}, {"--pieces", "3"}}) {
    const Ran ran = saved.certify(more);
    CHECK(ran.code == 2);
    CHECK(ran.err == "keel: usage: " + more[0] +
                         " is for a net of a SPEC: --weights is of a transformer, which says "
                         "itself what it is\n");
  }
  for (const char* option : {"--within", "--ranges"})
    CHECK(saved.certify({option, "3"})
              .err.starts_with(fmt::format(
                  "keel: usage: {} is for a net of a SPEC: a transformer is ", option)));
  CHECK(saved.certify({"--data", saved.data.table}).err ==
        "keel: usage: --data needs --target: the column that the net predicts\n");
}

}  // namespace
}  // namespace keel
