// keel predict: nets as they were saved, on tables and arrays.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "../../core/random.h"
#include "../../experiments/npy.h"
#include "../../experiments/table.h"
#include "../../kernels/transpose.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "helpers.h"

namespace keel {
namespace {

// y = 50 + 10 a - 3 b; 30 rows.
struct PredictFolder {
  TemporaryFolder folder;
  std::string table, bare;  // with y and without

  PredictFolder() {
    const auto draws = normal({30, 2}, {1, 0}, 1, DType::f64).to_vector<double>();
    std::string text = "a,b,y\n", features = "a,b\n";
    for (std::size_t row = 0; row < 30; ++row) {
      const double a = draws[2 * row], b = 7 + 5 * draws[2 * row + 1];
      text += fmt::format("{},{},{}\n", a, b, 50 + 10 * a - 3 * b);
      features += fmt::format("{},{}\n", a, b);
    }
    table = folder.file("t.csv", text);
    bare = folder.file("bare.csv", features);
  }

  Ran predict(std::vector<std::string> more) const {
    more.insert(more.begin(), {"predict", "--out", folder / "out", "--device", "cpu"});
    return run_keel(more);
  }
  nlohmann::json summary() const { return json_of(folder / "out/summary.json"); }
};

TEST_CASE("predict: what keel train said of the same rows, in the units of its training") {
  const PredictFolder given;
  const auto at = [&](const char* name) { return given.folder / name; };
  for (const std::string standardise : {"none", "x", "xy"})
    for (const std::string seeds : {"1", "3"}) {
      CAPTURE(standardise);
      CAPTURE(seeds);
      // A batchnorm in one of them: what is saved has taken it in.
      const std::string net = standardise == "x" ? "dense(8) batchnorm relu dense(1)"
                                                 : "dense(8) layernorm relu dense(1)";
      Ran ran = run_keel({"train",
                          "--net",
                          net,
                          "--data",
                          given.table,
                          "--target",
                          "y",
                          "--standardise",
                          standardise,
                          "--seeds",
                          seeds,
                          "--epochs",
                          "40",
                          "--save-weights",
                          at("w.safetensors"),
                          "--save",
                          at("p.csv"),
                          "--out",
                          at("train"),
                          "--device",
                          "cpu",
                          "--quiet"});
      REQUIRE(ran.code == 0);
      const auto trained = json_of(at("train/summary.json"));
      ran = given.predict({"--weights", at("w.safetensors"), "--data", given.table, "--target", "y",
                           "--save", at("q.csv")});
      REQUIRE(ran.err == "");
      const auto summary = given.summary();
      CHECK(summary["net"] == trained["saved_net"]);
      CHECK(summary["members"].dump() == seeds);
      CHECK(summary["rows"] == 30);
      for (const char* what : {"rmse", "r2", "rmse_of_mean", "r2_of_mean"})
        CHECK(summary[std::string("data_") + what].get<double>() ==
              doctest::Approx(trained[std::string("train_") + what].get<double>()).epsilon(1e-4));
      const Table theirs = read_table(at("p.csv")), ours = read_table(at("q.csv"));
      REQUIRE(theirs.values.size() == ours.values.size());
      CHECK(ours.names[1] == "prediction");
      for (std::size_t i = 0; i < ours.values.size(); ++i)
        CHECK(std::abs(ours.values[i] - theirs.values[i]) <
              1e-4 * (1 + std::abs(theirs.values[i])));
      // Without the target in the table, and as an array: the same, bit for bit.
      ran = given.predict(
          {"--weights", at("w.safetensors"), "--data", given.bare, "--save", at("bare.csv.out")});
      CHECK(ran.err == "");
      CHECK(content_of(at("bare.csv.out")) == content_of(at("q.csv")));
      const Table x = read_table(given.bare);
      write_npy(at("x.npy"), Tensor::from(x.values, {x.rows, x.cols}));
      ran = given.predict(
          {"--weights", at("w.safetensors"), "--x", at("x.npy"), "--save", at("y.npy")});
      REQUIRE(ran.err == "");
      const Tensor y = read_npy(at("y.npy"));
      const std::int64_t members = seeds == "1" ? 1 : 3;
      CHECK(y.shape() == (members == 1 ? Shape{30, 1} : Shape{3, 30, 1}));
      const auto values = y.to_vector<double>();
      for (std::int64_t s = 0; s < members; ++s)
        for (std::int64_t row = 0; row < 30; ++row)
          CHECK(values[static_cast<std::size_t>(s * 30 + row)] ==
                ours.at(row, members == 1 ? 1 : 3 + s));
      CHECK(ran.out.find("smallest") != std::string::npos);
    }
}

TEST_CASE("predict: another library's net is the function that its SPEC says") {
  const PredictFolder given;
  const std::string ours = given.folder / "ours.safetensors",
                    flax = given.folder / "flax.safetensors", x = given.folder / "x.npy",
                    y = given.folder / "y.npy";
  const char* spec = "dense(4) layernorm(eps=1e-6) gelu(tanh=1) dense(3)";
  const Net net(spec, 2, {.seed = 3, .dtype = DType::f64});
  save_weights(net, ours);
  SafeTensors content;
  for (const auto& [name, tensor] : read_safetensors(ours).tensors) {
    const bool matrix = tensor.rank() == 2, weight = name.ends_with(".weight");
    content.tensors.emplace_back((name[0] == '0'   ? "a/"
                                  : name[0] == '1' ? "n/"
                                                   : "b/") +
                                     std::string(matrix   ? "kernel"
                                                 : weight ? "scale"
                                                          : "bias"),
                                 matrix ? transpose(tensor).value() : tensor);
  }
  write_safetensors(flax, content);
  const Tensor inputs = normal({5, 2}, {2, 0}, 1, DType::f64);
  write_npy(x, inputs);
  const Ran ran = given.predict(
      {"--net", spec, "--weights", flax, "--modules", "a n b", "--x", x, "--save", y});
  REQUIRE(ran.err == "");
  CHECK(read_npy(y).to_vector<double>() == net.predict(inputs).to_vector<double>());
  CHECK(given.summary()["outputs"] == 3);
  // As a table, a column an output.
  REQUIRE(given
              .predict({"--net", spec, "--weights", flax, "--modules", "a n b", "--x", x, "--save",
                        given.folder / "y.csv"})
              .code == 0);
  const Table table = read_table(given.folder / "y.csv");
  CHECK(table.names == std::vector<std::string>{"row", "output_0", "output_1", "output_2"});
  CHECK(table.at(4, 3) == read_npy(y).to_vector<double>()[14]);
  // Of an ensemble each output's mean, deviation and members.
  const Net pair("dense(4) relu dense(2)", 2, {.members = 2});
  save_weights(pair, given.folder / "pair.safetensors");
  const auto of_pair = [&](const std::string& saved) {
    REQUIRE(given
                .predict({"--net", "dense(4) relu dense(2)", "--weights",
                          given.folder / "pair.safetensors", "--x", x, "--save", saved})
                .code == 0);
    return saved;
  };
  const Table both = read_table(of_pair(given.folder / "pair.csv"));
  CHECK(both.names == std::vector<std::string>{"row", "output_0", "output_0_std",
                                               "output_0_member_0", "output_0_member_1", "output_1",
                                               "output_1_std", "output_1_member_0",
                                               "output_1_member_1"});
  const auto array = read_npy(of_pair(given.folder / "pair.npy")).to_vector<double>();
  for (std::int64_t output : {0, 1}) {
    const double first = array[static_cast<std::size_t>(2 * 3 + output)],
                 second = array[static_cast<std::size_t>(10 + 2 * 3 + output)];
    CHECK(both.at(3, 1 + 4 * output) == doctest::Approx((first + second) / 2).epsilon(1e-14));
    CHECK(both.at(3, 2 + 4 * output) ==
          doctest::Approx(std::abs(first - second) / std::sqrt(2)).epsilon(1e-12));
    CHECK(both.at(3, 3 + 4 * output) == first);
    CHECK(both.at(3, 4 + 4 * output) == second);
  }
  // Of no rows none.
  write_npy(x, Tensor::zeros({0, 2}, DType::f64));
  REQUIRE(
      given.predict({"--net", spec, "--weights", flax, "--modules", "a n b", "--x", x, "--save", y})
          .code == 0);
  CHECK(read_npy(y).shape() == Shape{0, 3});
  // A default of theirs that SPEC leaves to PyTorch is said once.
  CHECK(given
            .predict({"--net", "dense(4) layernorm gelu(tanh=1) dense(3)", "--weights", flax,
                      "--modules", "a n b", "--x", x})
            .err.starts_with("note: " + flax + " has another library's names"));
}

TEST_CASE("predict: what makes no sense is refused in one line, and nothing is written") {
  const PredictFolder given;
  const std::string weights = given.folder / "w.safetensors", saved = given.folder / "p.csv";
  save_weights(Net("dense(2) relu dense(1)", 2), weights);
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& why) {
    more.insert(more.end(), {"--save", saved, "--quiet"});
    const Ran ran = given.predict(more);
    CHECK(ran.code == code);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_MESSAGE(ran.err.find(why) != std::string::npos, ran.err);
    CHECK(!std::filesystem::exists(saved));
    CHECK(!std::filesystem::exists(given.folder / "out/summary.json"));
  };
  refused({"--weights", weights}, 2, "wanted --data TABLE or --x ARRAY.npy, one of them");
  refused({"--data", given.bare}, 2, "--weights is required");
  refused({"--weights", weights, "--data", given.table, "--x", "x.npy"}, 2, "one of them");
  refused({"--weights", weights, "--x", "x.npy", "--target", "y"}, 2, "--target is a column");
  refused({"--weights", weights, "--x", "no.npy"}, 1, "no.npy: there is no such file");
  refused({"--weights", weights, "--data", given.table}, 1,
          "has 3 columns of features and " + weights +
              " takes 2, wanted as many; --target names one that is none");
  refused({"--weights", weights, "--data", given.bare, "--target", "b"}, 1,
          "has 1 columns of features");
  refused({"--weights", weights, "--data", given.table, "--target", "z"}, 1, "'z'");
  refused({"--weights", weights, "--data", given.bare, "--net", "dense(2) tanh dense(1)"}, 1,
          "holds the weights of 'dense(2) relu dense(1)'");
  refused({"--weights", given.table, "--data", given.table}, 1, "no safetensors file");
  SafeTensors content = read_safetensors(weights);
  content.metadata["keel.standardise"] = "xy";
  write_safetensors(weights, content);
  refused({"--weights", weights, "--data", given.bare}, 1, "does not say by what");
  content.metadata["keel.columns"] = "[[0, 1], [0, 0], [0, 1]]";
  write_safetensors(weights, content);
  refused({"--weights", weights, "--data", given.bare}, 1, "wanted [[mean, deviation], ...]");
  content.metadata["keel.columns"] = "[[0, 1], [0, 1]]";
  write_safetensors(weights, content);
  refused({"--weights", weights, "--data", given.bare}, 1,
          "has the units of 1 features and a net of 2, wanted as many");
  content.metadata.clear();
  write_safetensors(weights, content);
  refused({"--weights", weights, "--data", given.bare}, 2,
          "--net is required: " + weights + " does not say what it is of");
  save_weights(Net("dense(2) relu dense(2)", 2), weights);
  refused({"--weights", weights, "--data", given.table, "--target", "y"}, 1,
          "got a net of 2 outputs with --target, wanted 1");
  content.metadata.clear();
  for (auto& [name, tensor] : content.tensors)
    tensor = Tensor::full(tensor.shape(), 1e300, DType::f64);
  write_safetensors(weights, content);
  refused({"--weights", weights, "--net", "dense(2) relu dense(1)", "--data", given.bare}, 1,
          "the prediction of row ");
}

}  // namespace
}  // namespace keel
