#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "../../core/random.h"
#include "../../experiments/table.h"
#include "../../nn/safetensors.h"
#include "helpers.h"

namespace keel {
namespace {

// y = 3 a - 2 b + 100 with a third feature that says nothing; 64 rows.
std::string linear_table(std::uint64_t seed, const char* header) {
  const auto draws = normal({64, 3}, {seed, 0}).to_vector<double>();
  std::string text = header;
  for (int row = 0; row < 64; ++row) {
    const double a = 10 * draws[3 * row], b = draws[3 * row + 1], c = draws[3 * row + 2];
    text += fmt::format("{},{},{},{}\n", a, b, 3 * a - 2 * b + 100, c);
  }
  return text;
}

struct TrainData {
  TemporaryFolder folder;
  std::string train = folder.file("train.csv", linear_table(1, "a,b,y,c\n"));
  std::string test = folder.file("test.csv", linear_table(2, ""));

  Ran run(std::vector<std::string> more, const std::string& net = "dense(16) relu dense(1)") const {
    std::vector<std::string> arguments = {"train", "--net",    net,           "--data",
                                          train,   "--target", "y",           "--device",
                                          "cpu",   "--out",    folder / "out"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
};

TEST_CASE("train: learns, and writes predictions, weights and a summary") {
  const TrainData data;
  const Ran ran =
      data.run({"--test", data.test, "--standardise", "xy", "--epochs", "400", "--lr", "0.01",
                "--save", data.folder / "p.csv", "--save-weights", data.folder / "w.safetensors"});
  REQUIRE(ran.err == "note: " + data.train + " has a header and " + data.test +
                         " has none: columns are taken in their order\n");
  CHECK(ran.code == 0);
  CHECK(ran.out.find("RMSE") != std::string::npos);
  const auto summary = json_of(data.folder / "out/summary.json");
  CHECK(summary["train_rows"] == 64);
  CHECK(summary["features"] == 3);
  CHECK(summary["net"] == "dense(16) relu dense(1)");
  CHECK(summary["train_r2"].get<double>() > 0.99);
  CHECK(summary["test_r2"].get<double>() > 0.9);
  CHECK(summary["train_r2_ci"].is_null());

  const Table predictions = read_table(data.folder / "p.csv");
  CHECK(predictions.names == std::vector<std::string>{"row", "prediction"});
  REQUIRE(predictions.rows == 64);
  const Table test = read_table(data.test);
  double squares = 0;
  for (int row = 0; row < 64; ++row) {
    CHECK(predictions.at(row, 0) == row);
    squares += std::pow(predictions.at(row, 1) - test.at(row, 2), 2);
  }
  CHECK(std::sqrt(squares / 64) == doctest::Approx(summary["test_rmse"].get<double>()));
  CHECK(content_of(data.folder / "w.safetensors").find("\"0.weight\"") != std::string::npos);
}

TEST_CASE("train: an ensemble's members are the single nets, and the mean is predicted") {
  const TrainData data;
  const std::vector<std::string> common = {"--epochs", "20", "--batch", "10", "--save"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = common;
    all.insert(all.end(), more.begin(), more.end());
    CHECK(data.run(all).code == 0);
  };
  with({data.folder / "three.csv", "--seeds", "3", "--seed", "4", "--standardise", "none"});
  with({data.folder / "one.csv", "--seed", "5", "--standardise", "none"});
  const Table three = read_table(data.folder / "three.csv"),
              one = read_table(data.folder / "one.csv");
  CHECK(three.names ==
        std::vector<std::string>{"row", "prediction", "std", "seed_4", "seed_5", "seed_6"});
  const double a = three.at(9, 3), b = three.at(9, 4), c = three.at(9, 5), mean = (a + b + c) / 3;
  CHECK(three.at(9, 1) == doctest::Approx(mean));
  CHECK(three.at(9, 2) ==
        doctest::Approx(std::sqrt(
            (std::pow(a - mean, 2) + std::pow(b - mean, 2) + std::pow(c - mean, 2)) / 2)));
  bool same = true;
  for (int row = 0; row < 64; ++row) same &= three.at(row, 4) == one.at(row, 1);
  CHECK(same);
}

TEST_CASE("train: a test table without the target is predicted, not judged") {
  const TrainData data;
  const std::string blind = data.folder.file("blind.csv", "c,b,a\n1,2,3\n4,5,6\n");
  const Ran ran =
      data.run({"--test", blind, "--epochs", "1", "--save", data.folder / "p.csv", "--json"});
  CHECK(ran.code == 0);
  CHECK_FALSE(nlohmann::json::parse(ran.out).contains("test_r2"));
  CHECK(read_table(data.folder / "p.csv").rows == 2);
}

TEST_CASE("train: constant columns, in features and in the target") {
  const TrainData data;
  const std::string path = data.folder.file("constant.csv", "a,k,y\n1,7,2\n2,7,2\n3,7,2\n");
  const Ran ran =
      run_keel({"train", "--net", "dense(4) layernorm relu dense(1)", "--data", path, "--target",
                "-1", "--standardise", "xy", "--epochs", "5", "--out", data.folder / "out"});
  CHECK(ran.code == 0);
  CHECK(ran.err == "note: feature k never changes in " + path + "\n");
  CHECK(json_of(data.folder / "out/summary.json")["train_r2"].is_null());
}

TEST_CASE("train: batchnorms end in the weights, whose net predicts the same") {
  const TrainData data;
  const char* net = "dense(16) batchnorm relu dense(1)";
  const std::string weights = data.folder / "w.safetensors";
  Ran ran = data.run({"--test", data.train, "--standardise", "none", "--epochs", "300", "--lr",
                      "0.05", "--save", data.folder / "p.csv", "--save-weights", weights},
                     net);
  CHECK(
      ran.err ==
      "note: the weights in " + weights +
          " took the batchnorms in; they are of 'dense(16) identity relu dense(1)', in float64\n");
  REQUIRE(ran.code == 0);
  const auto summary = json_of(data.folder / "out/summary.json");
  CHECK(summary["net"] == net);
  CHECK(summary["saved_weights"] == weights);
  CHECK(summary["saved_net"] == "dense(16) identity relu dense(1)");
  CHECK(summary["parameters"] == 3 * 16 + 16 + 16 + 16 + 16 + 1);
  CHECK(summary["train_r2"].get<double>() > 0.9);
  CHECK(summary["test_r2"] == summary["train_r2"]);
  ran = run_keel({"certify", "--mode", "trained", "--net", "dense(16) identity relu dense(1)",
                  "--weights", weights, "--data", data.train, "--target", "y", "--standardise",
                  "none", "--directions", "4", "--steps", "1", "--out", data.folder / "certified"});
  REQUIRE(ran.err == "");
  const auto certified = json_of(data.folder / "certified/summary.json");
  CHECK(certified["data_fit_r2"].get<double>() ==
        doctest::Approx(summary["train_r2"].get<double>()).epsilon(1e-4));
  CHECK(!certified["bounded"].get<bool>());
  ran = run_keel({"certify", "--mode", "trained", "--net", net, "--weights", weights});
  CHECK(ran.code == 1);
  CHECK(ran.err.ends_with("; these are the weights of 'dense(16) identity relu dense(1)'\n"));

  // Refused before any epoch, and before an earlier checkpoint is touched: nobody could freeze it,
  // or it would have a step of one row.
  const auto checkpoint = content_of(data.folder / "out/checkpoint.safetensors");
  ran = data.run({"--batch", "1"}, net);
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("keel: train: got steps of 1 of "));
  CHECK(content_of(data.folder / "out/checkpoint.safetensors") == checkpoint);
  ran = data.run({"--epochs", "1000000000"}, "dense(4) relu batchnorm relu dense(1)");
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("keel: batch_norm: batchnorm at word 3 of 'dense(4) relu "));
}

TEST_CASE("train: bad input is one line") {
  const TrainData data;
  const auto refused = [&](std::vector<std::string> more,
                           const std::string& net = "dense(4) relu dense(1)") {
    const Ran ran = data.run(more, net);
    CHECK(ran.code == 1);
    CHECK(ran.out == "");
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    return ran.err;
  };
  CHECK(refused({}, "dense(4) relu dense(2)") ==
        "keel: train: got a net of 2 outputs, wanted dense(1) at its end\n");
  CHECK(refused({}, "dense(4) relu") ==
        "keel: spec: got 'relu' (word 2) as the last layer, wanted dense(k) for k outputs\n");
  CHECK(refused({}, "dense(4) softmax dense(1)").find("softmax") != std::string::npos);
  const std::string broken = data.folder.file("broken.csv", "a,b,y,c\n1,2,3,4\n1,2,,4\n");
  CHECK(refused({"--test", broken}) ==
        "keel: " + broken + ": line 3, column 3 (y): got nothing, wanted a number\n");
  CHECK(refused({"--test", data.folder / "no.csv"}) ==
        "keel: " + data.folder / "no.csv" + ": there is no such file\n");
  CHECK(refused({"--save", data.folder.str()}) ==
        "keel: output: got '" + data.folder.str() + "', wanted the path of a file\n");
  const std::string before = content_of(data.train);
  CHECK(refused({"--save", data.train}) ==
        "keel: output: got '" + data.train + "' for two files, wanted a name for each\n");
  CHECK(content_of(data.train) == before);
  CHECK(refused({"--save", data.folder / "f", "--save-weights", data.folder / "x/../f"})
            .find("for two files") != std::string::npos);
  CHECK(refused({"--save-weights", data.train + "/w"}).starts_with("keel: output: got folder '"));
  CHECK(refused({"--resume"}) ==
        fmt::format("keel: train: got --resume, but there is no checkpoint '{}'\n",
                    data.folder / "out/checkpoint.safetensors"));
  CHECK(refused({"--lr", "1e30", "--standardise", "none"}).find("smaller learning rate") !=
        std::string::npos);

  const auto on = [&](const char* text, const char* target) {
    const std::string path = data.folder.file("d.csv", text);
    const Ran ran = run_keel({"train", "--net", "dense(1)", "--data", path, "--target", target,
                              "--standardise", "none", "--out", data.folder / "out"});
    CHECK(ran.code == 1);
    const std::string start = "keel: " + path + ": ";
    return ran.err.starts_with(start) ? ran.err.substr(start.size()) : ran.err;
  };
  CHECK(on("a,y\n1,2\n2,3\n", "z") == "line 1: got column 'z', wanted one of: 0 a, 1 y\n");
  CHECK(on("a,y\n1,2\n", "y") == "got 1 row of numbers, wanted at least 2\n");
  CHECK(on("1e300,1\n2,3\n", "1") ==
        "row 0 (from 0), column 0 (from 0): got 1e+300 by --standardise none, more than float32 "
        "holds\n");
  const std::string far = data.folder.file("far.csv", "a,b,y,c\n3e38,3e38,0,3e38\n");
  CHECK(
      refused({"--test", far, "--epochs", "2", "--standardise", "none"}, "dense(64) relu dense(1)")
          .starts_with("keel: train: " + far + ": the prediction of row 0 (from 0) is "));
  CHECK(data.run({"--standardise", "z"}).code == 2);
  CHECK(data.run({"--epochs", "0"}).err ==
        "keel: usage: --epochs: got '0', wanted a whole number from 1 to 1000000000\n");
  CHECK(data.run({"--epochs", "1e3"}).err ==
        "keel: usage: --epochs: got '1e3', wanted a whole number from 1 to 1000000000\n");
  CHECK(data.run({"--epochs", "99999999999999999999"}).code == 2);
  CHECK(data.run({"--seeds", "0"}).code == 2);
  CHECK(data.run({"--batch", "-1"}).code == 2);
  for (const char* rate : {"0", "-1", "nan", "inf", "1e999", "fast"})
    CHECK(data.run({"--lr", rate}).err ==
          fmt::format("keel: usage: --lr: got '{}', wanted a number more than 0\n", rate));
  CHECK(run_keel({"train", "--net", "dense(1)"}).code == 2);
}

TEST_CASE("train: Ctrl-C keeps a checkpoint from which the same end is reached") {
  const TrainData data;
  const std::vector<std::string> options = {"--batch", "16", "--save"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = options;
    all.insert(all.end(), more.begin(), more.end());
    return data.run(all);
  };
  std::thread ctrl_c([] {
    struct sigaction action {};
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      sigaction(SIGINT, nullptr, &action);
    } while (action.sa_handler == SIG_DFL);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::raise(SIGINT);
  });
  const Ran stopped = with({data.folder / "p.csv", "--epochs", "1000000"});
  ctrl_c.join();
  CHECK(stopped.code == 130);
  CHECK(stopped.out == "");
  CHECK(stopped.err.starts_with("keel: stopped after "));
  CHECK(stopped.err.ends_with(" --epochs 1000000 --resume\n"));
  CHECK_FALSE(std::filesystem::exists(data.folder / "p.csv"));

  const std::string checkpoint = data.folder / "out/checkpoint.safetensors";
  SafeTensors content = read_safetensors(checkpoint);
  CHECK(std::stod(content.metadata.at("seconds")) > 0.05);
  content.metadata["seconds"] = "86400";  // a day, of which what follows is the end
  write_safetensors(checkpoint, content);

  // Where it stopped depends on the machine; some epochs further on does not.
  const std::size_t at = stopped.err.find("after ") + 6;
  const std::string epochs = std::to_string(std::stoll(stopped.err.substr(at)) + 2000);
  const Ran resumed = with({data.folder / "resumed.csv", "--epochs", epochs, "--resume"});
  CHECK(resumed.err == "");
  CHECK(resumed.out.find("trained in 864") != std::string::npos);
  CHECK(json_of(data.folder / "out/summary.json")["training_seconds"].get<double>() > 86400);
  const std::string begins = "checkpoint is ",
                    kept = stopped.err.substr(stopped.err.find(begins) + begins.size(),
                                              stopped.err.find("; to go on") -
                                                  stopped.err.find(begins) - begins.size()) +
                           ".old";
  CHECK(with({data.folder / "straight.csv", "--epochs", epochs}).err ==
        "note: an earlier run's checkpoint goes to " + kept + " when this one's is made\n");
  CHECK(content_of(data.folder / "resumed.csv") == content_of(data.folder / "straight.csv"));
  // The straight run found the resumed one's checkpoint, and did not destroy it.
  CHECK(std::filesystem::exists(kept));

  // A training that fails leaves both where they are.
  const std::string older = content_of(kept), newer = content_of(checkpoint);
  const Ran failed = with({data.folder / "failed.csv", "--epochs", "50", "--lr", "1e38"});
  CHECK(failed.code == 1);
  CHECK(failed.err.find("keel: train: got loss ") != std::string::npos);
  CHECK(content_of(kept) == older);
  CHECK(content_of(checkpoint) == newer);
}

}  // namespace
}  // namespace keel
