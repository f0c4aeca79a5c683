// keel certify --ranges and --boxes, as typed.
#include <sstream>

#include "../../experiments/certify_trained_report.h"
#include "trained.h"

namespace keel {
namespace {

// Of each column of a table.
std::vector<std::pair<double, double>> ranges_in(const std::string& table, std::size_t columns) {
  std::vector<std::pair<double, double>> ranges(columns, {1e300, -1e300});
  std::istringstream text(content_of(table));
  std::string line;
  std::getline(text, line);  // the header
  while (std::getline(text, line)) {
    std::istringstream fields(line);
    std::string field;
    for (auto& [low, high] : ranges) {
      std::getline(fields, field, ',');
      low = std::min(low, std::stod(field));
      high = std::max(high, std::stod(field));
    }
  }
  return ranges;
}

TEST_CASE("certify trained: of few features boxes leave nothing open, for every x there is") {
  const Trained net;
  const Ran cut = net.certify({});
  REQUIRE(cut.err == "");
  CHECK(cut.out.find("by the layernorm at word ") != std::string::npos);
  CHECK(cut.out.find(" boxes, to 0.1% of what f reaches\n") != std::string::npos);
  const auto closed = net.summary();
  CHECK(closed["closed"] == true);
  CHECK(closed["boxes"].get<int>() > 10);
  CHECK(closed["found_of_interval"].get<double>() > 0.995);
  REQUIRE(net.certify({"--boxes", "0"}).err == "");
  const auto dual = net.summary();
  CHECK(dual["closed"] == false);
  CHECK(dual["boxes"] == 0);
  const double low = closed["interval"][0], high = closed["interval"][1],
               near = 1e-3 * (high - low);
  CHECK(low >= dual["interval"][0].get<double>() - near);
  CHECK(high <= dual["interval"][1].get<double>() + near);
  CHECK(closed["largest_found"].get<double>() >= dual["largest_found"].get<double>() * 0.999);
}

TEST_CASE("certify trained: more boxes are named where the usual ones leave much open, and help") {
  TrainedFindings found;
  found.bound.bounded = true;
  found.bound.outputs = {{-1, 2}};
  found.bound.boxes = 100;
  found.share.value = 0.6;
  TrainedChoice choice;
  const auto named = [&] {
    return findings_text(found, choice, parse_spec("dense(2) layernorm dense(1)"),
                         Standardiser::none(5))
               .find("\nmore boxes may bring it nearer to what was found: --boxes ") !=
           std::string::npos;
  };
  CHECK(named());
  choice.boxes = 100;  // who asks for some knows of them
  CHECK(!named());
  choice.boxes.reset();
  found.share.value = 0.99;
  CHECK(!named());
  found.share.value = 0.6;
  found.bound.closed = true;
  CHECK(!named());
  found.bound.closed = false;
  found.bound.boxes = 0;  // none would help, of many features
  CHECK(!named());
}

TEST_CASE("certify trained: in the ranges of a table, as wide as they are or wider") {
  const Trained net(kNoNorm, "xy");
  const auto table = ranges_in(net.table, 2);
  double narrower = 0;
  for (const std::string widen : {"1", "2.5"}) {
    CAPTURE(widen);
    const Ran ran = net.certify(
        {"--data", net.table, "--target", "y", "--ranges", net.table, "--widen", widen});
    REQUIRE(ran.err == "");
    CHECK(ran.out.find("proved in these ranges: f(x) is never outside ") != std::string::npos);
    CHECK(ran.out.find("largest found in these ranges") != std::string::npos);
    CHECK(ran.out.find("ranges: those of the columns of " + net.table +
                       (widen == "1" ? "\n" : ", 2.5 times as wide\n")) != std::string::npos);
    const auto summary = net.summary();
    CHECK(summary["ranges"]["table"] == net.table);
    CHECK(summary["ranges"]["widen"] == std::stod(widen));
    const std::vector<double> x = summary["largest_found_at"]["x"];
    for (std::size_t k = 0; k < 2; ++k) {
      const auto [low, high] = table[k];
      const double middle = (low + high) / 2, half = std::stod(widen) * (high - low) / 2;
      CHECK(summary["ranges"]["low"][k].get<double>() == doctest::Approx(middle - half));
      CHECK(summary["ranges"]["high"][k].get<double>() == doctest::Approx(middle + half));
      CHECK(x[k] >= middle - half - 1e-9);
      CHECK(x[k] <= middle + half + 1e-9);
    }
    CHECK(summary["bounded_by"] == "ranges");
    CHECK(summary["closed"] == true);
    CHECK(summary["found_of_interval"].get<double>() > 0.995);
    const double bound = summary["bound"];
    CHECK(bound > narrower);
    narrower = bound;
  }
  // A table of two rows says them, its columns by name; without --data, by place.
  const std::string ends = net.folder.file("ends.csv", "b,a\n-1,0\n2,0.5\n");
  REQUIRE(net.certify({"--data", net.table, "--target", "y", "--ranges", ends}).err == "");
  CHECK(net.summary()["ranges"]["high"][0].get<double>() == doctest::Approx(0.5));
  CHECK(net.summary()["ranges"]["high"][1].get<double>() == doctest::Approx(2));
  const auto by_name = net.summary()["interval"];
  REQUIRE(net.certify({"--ranges", ends}).err == "");  // the weights have the names, too
  CHECK(net.summary()["interval"] == by_name);
  REQUIRE(net.certify({"--ranges", net.folder.file("p.csv", "0,-1\n0.5,2\n")})
              .err.ends_with("p.csv has no header: features are taken in their order\n"));
  CHECK(net.summary()["interval"] == by_name);
  const std::string dated = net.folder.file("d.csv", "day,a,b\nmon,0,-1\ntue,0.5,2\n");
  REQUIRE(net.certify({"--ranges", dated}).err == "");
  CHECK(net.summary()["interval"] == by_name);
  // A point.
  REQUIRE(net.certify({"--ranges", net.folder.file("one.csv", "a,b\n0.2,-1\n")}).err == "");
  const auto point = net.summary()["interval"];
  CHECK(point[1].get<double>() - point[0].get<double>() <= 1e-4);
  // With the target, and neither names nor --data that say which it is.
  const std::string bare = net.folder.file("bare.csv", "0,-1,3\n0.5,2,4\n");
  const Ran ran = net.certify({"--ranges", bare});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("has 3 columns of features and " + net.weights +
                     " takes 2, wanted as many; --ignore leaves a column out\n") !=
        std::string::npos);
}

TEST_CASE("certify: ranges and boxes are of one given net") {
  const Trained net;
  for (const char* option : {"--ranges", "--boxes"}) {
    const Ran ran = run_keel({"certify", "--net", kNet, "--data", net.table, "--target", "y",
                              option, "3", "--out", net.folder / "o"});
    CHECK(ran.code == 2);
    CHECK(ran.err.find(fmt::format("{} is for --mode trained", option)) != std::string::npos);
  }
}

}  // namespace
}  // namespace keel
