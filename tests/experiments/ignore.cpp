// --ignore, as typed.
#include <fmt/format.h>

#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("train, certify, regress and predict: columns to ignore") {
  const TemporaryFolder folder;
  std::string text = "id,a,when,y\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format("row {},{},2020-01-{:02},{}\n", i, i, i + 1, 2 * i);
  const std::string table = folder.file("t.csv", text), weights = folder / "w.safetensors";
  const auto run = [&](const char* command, std::vector<std::string> more) {
    std::vector<std::string> arguments = {command, "--data",     table,      "--target", "y",
                                          "--out", folder / "o", "--device", "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  const std::string net = "dense(8) layernorm relu dense(1)";
  Ran ran = run("train", {"--net", net, "--epochs", "5"});
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: " + table +
                       ": line 2, column 1 (id): got 'row 0', wanted a number; --ignore id "
                       "leaves the column out\n");
  ran = run("train", {"--net", net, "--epochs", "5", "--ignore", "id,when", "--test", table,
                      "--save-weights", weights});
  CHECK(ran.code == 0);
  CHECK(ran.err ==  // after five epochs
        "note: R^2 is below 0: the mean of the rows that it was trained on says more of them; try "
        "--standardise xy, more --epochs or another --lr\n");
  CHECK(json_of(folder / "o/summary.json")["features"] == 1);
  CHECK(json_of(folder / "o/summary.json")["ignore"] == std::vector<std::string>{"id", "when"});
  CHECK(run("train", {"--net", net, "--epochs", "5", "--ignore", "id", "--ignore", "2"}).code == 0);
  CHECK(run("predict", {"--weights", weights, "--ignore", "id,when"}).code == 0);
  CHECK(run("certify", {"--mode", "trained", "--weights", weights, "--ignore", "0,2",
                        "--directions", "2", "--steps", "2"})
            .code == 0);
  for (const char* command : {"regress", "certify"})
    CHECK(run(command, {"--net", net, "--ridge", "0.1", "--ignore", "id,when"}).code == 0);
  const auto refused = [&](const char* columns, const char* why) {
    const Ran no = run("train", {"--net", net, "--ignore", columns});
    CHECK(no.code == 1);
    CHECK_MESSAGE(no.err.find(why) != std::string::npos, no.err);
  };
  refused("id,when,y", "got column 'y' for the target and to ignore");
  refused("id,when,a", "got no column but the target that is not ignored");
  refused("id,nothing", "got column 'nothing', wanted one of: 0 id, 1 a, 2 when, 3 y");
  refused("4", "got column '4'");
  const Ran array = run_keel({"predict", "--weights", weights, "--x", "x.npy", "--ignore", "id"});
  CHECK(array.err == "keel: usage: --ignore is of columns of --data, which is not given\n");
}

}  // namespace
}  // namespace keel
