// docs/summary.md: whatever a command writes into its summary stands there.
#include <fmt/format.h>

#include <set>

#include "../../bench/source_folder.h"
#include "helpers.h"

namespace keel {
namespace {

// What stands between backticks.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t at = text.find('`'); at != text.npos;) {
    const std::size_t end = text.find('`', at + 1);
    if (end == text.npos) break;
    words.insert(text.substr(at + 1, end - at - 1));
    at = text.find('`', end + 1);
  }
  return words;
}

TEST_CASE("summary.json: each of its fields is documented") {
  const std::set<std::string> known =
      words_of(content_of((source_folder() / "docs/summary.md").string()));
  REQUIRE(known.size() > 100);
  const TemporaryFolder folder;
  std::string text = "id,a,y\n", series;
  for (int i = 0; i < 30; ++i) {
    text += fmt::format("{},{},{}\n", i, 0.1 * i, 5 + 0.2 * i * (i % 3));
    series += fmt::format("{}\n", i % 4);
  }
  const std::string table = folder.file("t.csv", text), one = folder / "one.st",
                    two = folder / "two.st", x = folder / "k.npy", out = folder / "o";
  const auto documented = [&](std::vector<std::string> arguments) {
    CAPTURE(arguments[0]);
    arguments.insert(arguments.end(), {"--out", out, "--device", "cpu", "--quiet"});
    REQUIRE(run_keel(arguments).code == 0);
    const nlohmann::json summary = json_of(out + "/summary.json");
    std::vector<nlohmann::json> parts = {summary};
    for (const char* part : {"by_member", "devices"})
      if (summary.contains(part)) parts.push_back(summary[part][0]);
    for (const char* part : {"largest_found_at", "exceeded_at", "ranges", "one_step", "rollout"})
      if (summary.contains(part)) parts.push_back(summary[part]);
    for (const nlohmann::json& part : parts)
      for (const auto& field : part.items())
        CHECK_MESSAGE(known.contains(field.key()), field.key());
  };
  const auto with = [](std::vector<std::string> all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string net = "dense(8) layernorm relu dense(1)";
  const std::vector<std::string> of = {"--data", table, "--target", "y", "--ignore", "id"};
  const std::vector<std::string> train = with({"train", "--net", net, "--epochs", "2"}, of),
                                 search = {"--directions", "2", "--steps", "1"};
  documented({"info"});
  documented(with(train, {"--hold-out", "5", "--seeds", "2", "--save-weights", two, "--history",
                          folder / "h.csv"}));
  documented(with(train, {"--test", table, "--save-weights", one}));
  documented(with({"predict", "--weights", two, "--save", folder / "p.csv"}, of));
  documented({"predict", "--weights", one, "--data", table});
  documented({"ntk", "--net", net, "--x1", table, "--x2", table, "--save", x});
  documented({"ntk", "--mode", "empirical", "--weights", one, "--x1", table, "--save", x});
  const std::vector<std::string> regress = with({"regress", "--net", net}, of);
  documented(with(regress, {"--test", table, "--ridge", "1", "--save", folder / "p.csv"}));
  documented(with(regress, {"--epochs", "3", "--lr", "1e-3"}));
  documented(with(regress, {"--time", "1", "--mode", "empirical", "--hold-out", "3"}));
  const std::vector<std::string> certify = with(with({"certify", "--ridge", "1"}, of), search);
  documented(with(certify, {"--net", net, "--within", "2"}));
  documented(with(certify, {"--net", "dense(8) relu dense(1)"}));
  documented(with(certify, {"--net", net, "--mode", "empirical"}));
  const std::vector<std::string> trained =
      with({"certify", "--mode", "trained", "--boxes", "4"}, search);
  documented(with(with(trained, {"--weights", two}), of));
  documented(with(trained, {"--weights", one, "--ranges", table}));
  documented(with(trained, {"--weights", two, "--within", "3", "--member", "1"}));
  const std::string level = folder.file("s.csv", series), nets = folder / "f.st";
  documented({"forecast", "--data", level, "--target", "0", "--length", "4", "--steps", "2",
              "--seeds", "2", "--no-plot", "--no-layernorm", "--save-weights", nets});
  documented(
      with({"certify", "--mode", "trained", "--weights", nets, "--data", level, "--target", "0"},
           search));
}

}  // namespace
}  // namespace keel
