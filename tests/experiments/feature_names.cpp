// Features by their names: what keel train writes of them, and what predict and certify make of it.
#include "../../experiments/feature_names.h"

#include <algorithm>

#include "../../nn/safetensors.h"
#include "helpers.h"

namespace keel {
namespace {

struct Named {
  TemporaryFolder folder;
  std::string weights = folder / "w.safetensors", saved = folder / "p.csv";

  // y = 3 a - b + 100; two features of other ranges, with a comma and a letter of two bytes.
  Named() {
    const std::string data = folder.file(
        "t.csv",
        "\"height, m\",breite ü,y\n1,200,-97\n2,100,6\n3,400,-291\n4,300,-188\n0,500,-400\n");
    const Ran ran =
        run_keel({"train", "--net", "dense(4) layernorm relu dense(1)", "--data", data, "--target",
                  "y", "--standardise", "xy", "--epochs", "20", "--save-weights", weights, "--out",
                  folder / "train", "--device", "cpu", "--quiet"});
    REQUIRE(ran.err == "");
  }

  Ran predict(const std::string& text, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"predict", "--weights", weights, "--data", folder.file("new.csv", text), "--save",
                 saved, "--out", folder / "out", "--device", "cpu"});
    return run_keel(more);
  }
  std::string predicted(const std::string& text, const std::string& note,
                        std::vector<std::string> more = {}) {
    const Ran ran = predict(text, std::move(more));
    CHECK(ran.code == 0);
    CHECK(ran.err == note);
    return content_of(saved);
  }
};

TEST_CASE("predict: features go by their names, whatever else the table holds, in any order") {
  Named given;
  CHECK(read_safetensors(given.weights).metadata.at(kFeaturesKey) ==
        "[\"height, m\",\"breite ü\"]");
  const std::string note = "note: " + given.folder / "new.csv" + ": no features of " +
                           given.weights + ", and left out: ";
  const std::string wanted = given.predicted("\"height, m\",breite ü\n1,250\n2,333\n", "");
  CHECK(std::count(wanted.begin(), wanted.end(), '\n') == 3);
  CHECK(given.predicted("breite ü,\"height, m\"\n250,1\n333,2\n", "") == wanted);
  CHECK(given.predicted("day,breite ü,y,\"height, m\"\nMonday,250,7,1\nno number,333,8,2\n",
                        note + "'day', 'y'\n") == wanted);
  // The target stays to judge by.
  CHECK(given.predicted("day,breite ü,y,\"height, m\"\nMonday,250,7,1\nno number,333,8,2\n",
                        note + "'day'\n", {"--target", "y"}) == wanted);
  CHECK(json_of(given.folder / "out/summary.json").contains("data_rmse"));
  // By place, where a header tells nothing.
  CHECK(given.predicted("1,250\n2,333\n", "note: " + given.folder / "new.csv" +
                                              " has no header: features are taken in their "
                                              "order\n") == wanted);
  CHECK(given.predicted("x,x\n1,250\n2,333\n",
                        "note: " + given.folder / "new.csv" +
                            " has a header in which names repeat: features are taken in their "
                            "order\n") == wanted);
}

TEST_CASE("predict: a feature that is missing, ignored or the target is named") {
  Named given;
  const auto refused = [&](const std::string& text, const std::string& why,
                           std::vector<std::string> more = {}) {
    const Ran ran = given.predict(text, std::move(more));
    CHECK(ran.code == 1);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_MESSAGE(ran.err.find(why) != std::string::npos, ran.err);
    CHECK(!std::filesystem::exists(given.saved));
  };
  const std::string both = "\"height, m\",breite ü\n1,2\n", of = "a feature of " + given.weights;
  refused("\"height, m\",Breite\n1,2\n", "line 1: there is no column 'breite ü', which is " + of);
  refused(both, "line 1: ignored column 'breite ü', which is " + of, {"--ignore", "breite ü"});
  refused(both, "got column 'breite ü' for the target, which is " + of, {"--target", "breite ü"});
  refused(both, "got column 'z', wanted one of: 0 height, m, 1 breite ü", {"--target", "z"});
  for (const char* text : {"[]", "{", "[1, 2]", "[\"a\", \"a\"]", "\"a\""}) {
    SafeTensors file = read_safetensors(given.weights);
    file.metadata[kFeaturesKey] = text;
    write_safetensors(given.weights, file);
    refused(both, "for keel.features, wanted [\"name\", ...], all different");
  }
}

TEST_CASE("a header of older programs is kept as UTF-8, and matches one that is") {
  const TemporaryFolder folder;
  const std::string rows = "1,2,3\n4,5,6\n7,8,1\n2,2,2\n", weights = folder / "w.safetensors";
  const std::string latin = folder.file("latin.csv", "l\xE9,b,y\n" + rows),
                    moved = folder.file("moved.csv", "b,y,l\xC3\xA9\n2,3,1\n5,6,4\n8,1,7\n2,2,2\n");
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--target", "y", "--out", folder / "out", "--device", "cpu"});
    return run_keel(arguments);
  };
  REQUIRE(run({"train", "--net", "dense(4) relu dense(1)", "--data", latin, "--epochs", "3",
               "--save-weights", weights, "--quiet"})
              .code == 0);
  CHECK(read_safetensors(weights).metadata.at(kFeaturesKey) == "[\"l\xC3\xA9\",\"b\"]");
  std::vector<double> errors;
  for (const std::string& data : {latin, moved}) {
    const Ran ran = run({"predict", "--weights", weights, "--data", data});
    CHECK(ran.err == "");
    errors.push_back(json_of(folder / "out/summary.json")["data_rmse"].get<double>());
  }
  CHECK(errors[0] == errors[1]);
}

TEST_CASE("train writes no names where a table has none, or one twice") {
  const TemporaryFolder folder;
  for (const std::string header : {"", "a,a,y\n"}) {
    const std::string data = folder.file("t.csv", header + "1,2,3\n4,5,6\n7,8,1\n"),
                      weights = folder / "w.safetensors";
    const Ran ran = run_keel({"train", "--net", "dense(2) relu dense(1)", "--data", data,
                              "--target", "2", "--epochs", "1", "--save-weights", weights, "--out",
                              folder / "out", "--device", "cpu"});
    REQUIRE(ran.code == 0);
    CHECK((ran.err.find("note: names repeat in the header of " + data + ": " + weights +
                        " keeps none, and features go by their order\n") != std::string::npos) ==
          !header.empty());
    // Who reads them with a header is told.
    const std::string named = folder.file("n.csv", "a,b\n1,2\n"),
                      bare = folder.file("b.csv", "1,2\n");
    const auto predicted = [&](const std::string& rows) {
      return run_keel({"predict", "--weights", weights, "--data", rows, "--out", folder / "out",
                       "--device", "cpu"})
          .err;
    };
    CHECK(predicted(named) == "note: " + weights +
                                  " has no names of its features: features are taken in their "
                                  "order\n");
    CHECK(predicted(bare) == "");
    CHECK(!read_safetensors(weights).metadata.contains(kFeaturesKey));
  }
}

TEST_CASE("certify: ranges go by the names that the weights have") {
  Named given;
  const auto interval = [&](const std::string& text, bool by_place = false) {
    const Ran ran =
        run_keel({"certify", "--mode", "trained", "--weights", given.weights, "--ranges",
                  given.folder.file("r.csv", text), "--steps", "5", "--directions", "4", "--out",
                  given.folder / "out", "--device", "cpu"});
    CHECK(ran.err == (by_place ? "note: " + given.folder / "r.csv" +
                                     " has no header: features are taken in their order\n"
                               : std::string()));
    REQUIRE(ran.code == 0);
    return json_of(given.folder / "out/summary.json")["interval"];
  };
  const auto wanted = interval("\"height, m\",breite ü\n1,150\n2,350\n");
  CHECK(interval("breite ü,day,\"height, m\"\n150,Monday,1\n350,Friday,2\n") == wanted);
  CHECK(interval("150,1\n350,2\n", true) != wanted);
}

}  // namespace
}  // namespace keel
