// keel ntk and regress of weights that keel trained: x in the units of their training.
#include "../../experiments/net_inputs.h"
#include "../../experiments/standardiser.h"

#include <filesystem>

#include "../../experiments/npy.h"
#include "../../nn/transformer_weights.h"
#include "trained.h"

namespace keel {
namespace {

// The kernel of a trained net's weights at x, as it is or as a table.
std::vector<double> kernel_at(const Trained& net, const std::string& x, const std::string& note,
                              const std::string& weights) {
  const Ran ran = run_keel({"ntk", "--mode", "empirical", "--weights", weights, "--x1", x, "--save",
                            net.folder / "k.npy", "--out", net.folder / "ntk", "--device", "cpu"});
  CHECK(ran.code == 0);
  CHECK(ran.err == note);
  return read_npy(net.folder / "k.npy").to_vector<double>();
}

// The same weights, of which nothing is known but their SPEC.
std::string without_units(const Trained& net) {
  SafeTensors content = read_safetensors(net.weights);
  for (const char* key : {"keel.standardise", "keel.columns", "keel.features"})
    content.metadata.erase(key);
  write_safetensors(net.folder / "bare.safetensors", content);
  return net.folder / "bare.safetensors";
}

const char* const kTwoRows = "a,b\n0.5,-1\n2,0.25\n";

TEST_CASE("ntk: of weights that keel trained x is in the units of their training") {
  for (const std::string standardise : {"none", "x", "xy"}) {
    CAPTURE(standardise);
    const Trained net("dense(4) layernorm relu dense(1)", standardise.c_str());
    const SafeTensors file = read_safetensors(net.weights);
    const Standardiser units = units_of_weights(file, net.weights, 2);
    CHECK(units.moves_x() == (standardise != "none"));
    Examples rows;
    rows.rows = rows.features = 2;
    rows.x = {0.5, -1, 2, 0.25};
    write_npy(net.folder / "own.npy", Tensor::from(rows.x, {2, 2}));
    write_npy(net.folder / "moved.npy", Tensor::from(units.x(rows), {2, 2}));
    const std::string bare = without_units(net);
    const auto wanted = kernel_at(net, net.folder / "moved.npy", "", bare);
    CHECK(kernel_at(net, net.folder / "own.npy", "", net.weights) == wanted);
    CHECK(json_of(net.folder / "ntk/summary.json")["standardise"] ==
          (standardise == "none" ? "none" : "x"));
    CHECK((kernel_at(net, net.folder / "own.npy", "", bare) == wanted) == (standardise == "none"));
    // A table's columns go by their names, and others are told of.
    CHECK(kernel_at(net, net.folder.file("t.csv", kTwoRows), "", net.weights) == wanted);
    const std::string other = net.folder.file("o.csv", "b,day,a\n-1,mon,0.5\n0.25,tue,2\n");
    CHECK(
        kernel_at(net, other,
                  "note: " + other + ": no features of " + net.weights + ", and left out: 'day'\n",
                  net.weights) == wanted);
  }
}

TEST_CASE("regress: of weights that keel trained x is in the units of their training") {
  const Trained net("dense(4) layernorm relu dense(1)", "x");
  const std::string saved = net.folder / "p.csv";
  const auto regress = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"regress", "--mode", "empirical", "--ridge", "0.1", "--save", saved,
                               "--out", net.folder / "out", "--device", "cpu", "--quiet"});
    return run_keel(more);
  };
  const auto predicted = [&](std::vector<std::string> more) {
    CHECK(regress(std::move(more)).code == 0);
    return content_of(saved);
  };
  const std::string test = net.folder.file("new.csv", kTwoRows), bare = without_units(net),
                    spec = net.spec;
  // The table of the training has its units anyway.
  const std::string wanted =
      predicted({"--weights", net.weights, "--data", net.table, "--target", "y", "--test", test});
  CHECK(predicted({"--net", spec, "--weights", bare, "--data", net.table, "--target", "y", "--test",
                   test}) == wanted);
  // Of another table x is in those, too: as if it had been moved by hand.
  const SafeTensors file = read_safetensors(net.weights);
  const Standardiser units = units_of_weights(file, net.weights, 2);
  const std::vector<double> x = {3, 1, -2, 0.5, 1, 7, 0.5, -1, 2, 0.25};
  Examples rows;
  rows.rows = 5;
  rows.features = 2;
  rows.x = x;
  const std::vector<double> moved = units.x(rows);
  const auto table = [&](const char* name, const std::vector<double>& at) {
    std::string data = "a,b,y\n", five = "a,b\n";
    for (std::size_t i = 0; i < 5; ++i) {
      const std::string line = fmt::format("{},{}", at[2 * i], at[2 * i + 1]);
      (i < 3 ? data : five) += i < 3 ? fmt::format("{},{}\n", line, 40 + 5 * i) : line + "\n";
    }
    net.folder.file(fmt::format("{}.csv", name), data);
    net.folder.file(fmt::format("{}_test.csv", name), five);
    return std::pair(net.folder / fmt::format("{}.csv", name),
                     net.folder / fmt::format("{}_test.csv", name));
  };
  const auto [own, own_test] = table("own", x);
  const auto [by_hand, by_hand_test] = table("hand", moved);
  CHECK(predicted({"--weights", net.weights, "--data", own, "--target", "y", "--test", own_test}) ==
        predicted({"--weights", bare, "--data", by_hand, "--target", "y", "--test", by_hand_test,
                   "--standardise", "none"}));
  CHECK(json_of(net.folder / "out/summary.json")["net"] == spec);
}

TEST_CASE(
    "weights that say no units: a net's inputs are taken as they are, and a regression's noted") {
  const Trained net("dense(4) layernorm relu dense(1)", "none");
  const std::string bare = without_units(net);
  const auto ranges = [&](const std::string& weights, std::vector<std::string> more) {
    more.insert(more.end(), {"--ranges", net.table, "--weights", weights, "--data", net.table,
                             "--target", "y", "--quiet"});
    REQUIRE(net.certify(std::move(more)).code == 0);
    return net.summary()["interval"];
  };
  const auto own = ranges(net.weights, {});
  CHECK(ranges(bare, {}) == own);
  CHECK(ranges(bare, {"--standardise", "x"}) != own);
  const Ran ran = run_keel({"regress", "--mode", "empirical", "--net", net.spec, "--weights", bare,
                            "--data", net.table, "--target", "y", "--ridge", "0.1", "--out",
                            net.folder / "out", "--device", "cpu"});
  CHECK(ran.err.find("note: " + bare +
                     " does not say the units of its inputs: they are "
                     "standardised by " +
                     net.table + " (--standardise none: taken as they are)\n") !=
        std::string::npos);
}

TEST_CASE("regress: of weights that keel trained features go by their names, in both tables") {
  const Trained net("dense(4) layernorm relu dense(1)", "x");
  const std::string saved = net.folder / "p.csv";
  const auto predicted = [&](const std::string& data, const std::string& test) {
    CHECK(run_keel({"regress",
                    "--mode",
                    "empirical",
                    "--weights",
                    net.weights,
                    "--target",
                    "y",
                    "--data",
                    data,
                    "--test",
                    test,
                    "--ridge",
                    "0.1",
                    "--save",
                    saved,
                    "--out",
                    net.folder / "out",
                    "--device",
                    "cpu",
                    "--quiet"})
              .code == 0);
    return content_of(saved);
  };
  const std::string plain = net.folder.file("p1.csv", "a,b,y\n1,2,3\n4,-5,6\n0,1,2\n"),
                    swapped = net.folder.file("p2.csv", "note,b,y,a\nu,2,3,1\nv,-5,6,4\nw,1,2,0\n"),
                    test = net.folder.file("new.csv", kTwoRows),
                    turned = net.folder.file("turned.csv", "b,more,a\n-1,x,0.5\n0.25,y,2\n");
  const std::string wanted = predicted(plain, test);
  CHECK(predicted(plain, turned) == wanted);
  CHECK(predicted(swapped, test) == wanted);
  CHECK(predicted(swapped, turned) == wanted);
  // By place: of the table that is trained on, whatever the order of the weights.
  const std::string by_place = net.folder.file("bare.csv", "-1,0.5\n0.25,2\n"),
                    two = net.folder.file("p3.csv", "b,y,a\n2,3,1\n-5,6,4\n1,2,0\n");
  CHECK(predicted(two, by_place) == wanted);
}

TEST_CASE("ntk and regress: units and names of weights that do not fit are refused") {
  const Trained net("dense(4) layernorm relu dense(1)", "x");
  const auto refused = [&](std::vector<std::string> more, const std::string& what) {
    more.insert(more.end(), {"--mode", "empirical", "--out", net.folder / "out", "--device", "cpu",
                             "--save", net.folder / "never"});
    const Ran ran = run_keel(more);
    CHECK(ran.code == 1);
    CHECK(ran.err == "keel: " + what + "\n");
    CHECK(!std::filesystem::exists(net.folder / "never"));
  };
  const std::vector<std::string> regress = {"regress",  "--weights", net.weights,
                                            "--target", "y",         "--data"};
  const auto of = [&](const std::string& data, std::vector<std::string> more = {}) {
    std::vector<std::string> all = regress;
    all.push_back(data);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  refused(of(net.table, {"--standardise", "none"}),
          "standardise: " + net.weights +
              " is of a net that keel trained with --standardise x, got none");
  const std::string swapped = net.folder.file("s.csv", "b,a,y\n1,2,3\n4,5,6\n"),
                    lacking = net.folder.file("l.csv", "c,a,y\n1,2,3\n4,5,6\n");
  refused(of(lacking),
          lacking + ": line 1: there is no column 'b', which is a feature of " + net.weights);
  const std::string transformer = net.folder / "t.safetensors";
  save_transformer(Transformer({.length = 3, .width = 4, .hidden = 4, .seeds = {1}}), transformer);
  refused({"ntk", "--weights", transformer, "--x1", swapped},
          "empirical_kernel: " + transformer +
              " is of transformers, wanted weights of one net of a SPEC");
  // One that says that it has units, and not which; and those of another net.
  SafeTensors content = read_safetensors(net.weights);
  content.metadata["keel.columns"] = "[[0,1],[0,1]]";
  const std::string other = net.folder / "other.safetensors";
  write_safetensors(other, content);
  refused({"ntk", "--weights", other, "--x1", net.folder.file("t.csv", kTwoRows)},
          "weights: " + other + " has the units of 1 features and a net of 2, wanted as many");
  content.metadata.erase("keel.columns");
  write_safetensors(other, content);
  refused({"ntk", "--weights", other, "--x1", net.folder / "t.csv"},
          "weights: " + other +
              " is of a net that keel trained with --standardise x and does not say by what: "
              "wanted keel.columns in its metadata");
}

TEST_CASE("ntk and regress: without weights that say it, --net is required") {
  const TemporaryFolder folder;
  const std::string x = folder.file("t.csv", kTwoRows);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"ntk", "--x1", x, "--save", folder / "k.npy"},
        {"regress", "--data", x, "--target", "b"},
        {"certify", "--data", x, "--target", "b"}}) {
    const Ran ran = run_keel(command);
    CHECK(ran.code == 2);
    CHECK(ran.err == "keel: usage: --net is required\n");
  }
}

}  // namespace
}  // namespace keel
