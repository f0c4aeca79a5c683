// keel certify --mode trained, as typed.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../../core/random.h"
#include "../../experiments/table.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "trained.h"

namespace keel {
namespace {

TEST_CASE("certify trained: a proved bound in the table's units, without the table and with it") {
  for (const char* standardise : {"x", "xy"}) {
    CAPTURE(standardise);
    const Trained net(kNet, standardise);
    // Of a file that says nothing of units they are those that the net sees.
    SafeTensors anonymous = read_safetensors(net.weights);
    anonymous.metadata.erase("keel.columns");
    anonymous.metadata.erase("keel.standardise");
    write_safetensors(net.folder / "anonymous.safetensors", anonymous);
    Ran ran = net.certify({"--quiet", "--weights", net.folder / "anonymous.safetensors"});
    REQUIRE(ran.err == "");
    const auto own = net.summary();
    CHECK(own["bounded"] == true);
    CHECK(own["mode"] == "trained");
    CHECK(own["data_fit_r2"].is_null());
    CHECK(own["centre"] == 0);
    const double bound = own["bound"], found = own["largest_found"];
    const double low = own["interval"][0], high = own["interval"][1];
    CHECK(found > 0);
    CHECK(found <= bound);
    CHECK(found > 0.05 * bound);
    CHECK(bound == std::max(std::abs(low), std::abs(high)));
    CHECK(own["found_over_bound"].get<double>() == doctest::Approx(found / bound));
    CHECK(own["bounded_by"] == "layernorm");
    CHECK(own["bounded_by_word"] == 2);
    CHECK(own["bounded_by_dimension"] == 3);
    CHECK(own["features"] == 2);
    CHECK(!own.contains("exceeded_at"));

    // Of other rows the units would be others.
    const std::string more = net.folder.file("more.csv", content_of(net.table) + "9,9,900\n");
    ran = net.certify({"--data", more, "--target", "y", "--standardise", standardise});
    CHECK(ran.code == 1);
    CHECK(ran.err.starts_with("keel: " + net.weights +
                              ": is of a net trained on rows whose feature a has mean "));
    // Features go by their names, whatever else there is.
    ran = net.certify({"--data", net.table, "--target", "b", "--standardise", standardise});
    CHECK(ran.code == 1);
    CHECK(ran.err == "keel: " + net.table + ": got column 'b' for the target, which is a feature " +
                         "of " + net.weights + "\n");
    REQUIRE(net.certify({"--data", net.table, "--target", "y"}).code == 0);
    const double fit = net.summary()["data_fit_r2"];
    std::string moved = "day,y,b,a\n";
    const Table rows = read_table(net.table);
    for (std::int64_t row = 0; row < rows.rows; ++row)
      moved += fmt::format("monday,{},{},{}\n", rows.at(row, 2), rows.at(row, 1), rows.at(row, 0));
    ran = net.certify({"--data", net.folder.file("moved.csv", moved), "--target", "y",
                       "--standardise", standardise});
    CHECK(ran.err == "note: " + net.folder / "moved.csv" + ": no features of " + net.weights +
                         ", and left out: 'day'\n");
    REQUIRE(ran.code == 0);
    CHECK(net.summary()["data_fit_r2"].get<double>() == doctest::Approx(fit).epsilon(1e-9));
    ran = run_keel({"certify", "--mode", "trained", "--weights", net.weights, "--out",
                    net.folder / "out", "--device", "cpu", "--directions", "16", "--steps", "5"});
    CHECK(ran.err == "");
    REQUIRE(ran.code == 0);
    CHECK(ran.out.find("largest found for |x| <= 1e+06, standardised ") != std::string::npos);
    const auto by_file = net.summary();
    CHECK(by_file["net"] == net.spec);
    // --standardise, too, is what the file says.
    ran = net.certify({"--data", net.table, "--target", "y"});
    CHECK(ran.err == "");
    for (const char* name : {"interval", "bound", "centre"})
      CHECK(by_file[name] == net.summary()[name]);
    ran = net.certify({"--data", net.table, "--target", "y", "--standardise", standardise});
    REQUIRE(ran.code == 0);
    CHECK(ran.out.find("proved: f(x) is never outside") != std::string::npos);
    CHECK(ran.out.find("layernorm at word 2: its 16 units stay in a ball of 3 dimensions") !=
          std::string::npos);
    const auto in_units = net.summary();
    // What is printed is rounded, and still holds.
    double low_shown = 0, high_shown = 0, centre_shown = 0, bound_shown = 0;
    const auto shown = [&](const char* what, const char* format, auto*... numbers) {
      const std::size_t at = ran.out.find(what);
      REQUIRE(at != std::string::npos);
      CHECK(std::sscanf(ran.out.c_str() + at, format, numbers...) == sizeof...(numbers));
    };
    shown("never outside", "never outside [%lf, %lf]", &low_shown, &high_shown);
    if (in_units["centre"] == 0)
      shown("|f(x)| is at most", "|f(x)| is at most %lf", &bound_shown);
    else
      shown("|f(x) - ", "|f(x) - %lf| is at most %lf", &centre_shown, &bound_shown);
    CHECK(low_shown <= in_units["interval"][0].get<double>());
    CHECK(high_shown >= in_units["interval"][1].get<double>());
    CHECK(std::abs(centre_shown - in_units["centre"].get<double>()) <= 1e-5 * centre_shown);
    CHECK(bound_shown >= in_units["bound"].get<double>());
    CHECK(in_units["data_fit_r2"].get<double>() > 0.9);
    CHECK(in_units["train_rows"] == 40);
    CHECK(in_units["largest_found"].get<double>() <= in_units["bound"].get<double>());
    const double centre = in_units["centre"];
    const bool y_too = std::string(standardise) == "xy";
    CHECK((centre != 0) == y_too);
    // y's own units: 50 +- 10 or so, and the same interval moved and scaled
    const double scale = in_units["bound"].get<double>() / bound;
    CHECK((y_too ? scale > 3 && scale < 30 : scale == 1));
    CHECK(in_units["interval"][0].get<double>() == doctest::Approx(centre + scale * low));
    CHECK(in_units["interval"][1].get<double>() == doctest::Approx(centre + scale * high));
  }
}

TEST_CASE("certify trained: an RMSNorm bounds a net, too, and a tanh or sigmoid without any norm") {
  struct Case {
    const char *net, *said, *by;
    int word;
    double least;  // of the bound, that is found
  };
  for (const Case& of :
       {Case{"dense(16) rmsnorm relu dense(1)",
             "by the rmsnorm at word 2: its 16 units stay in a ball of 3 dimensions", "rmsnorm", 2,
             0.3},
        Case{"dense(16) leakyrelu(slope=0.1) dense(8) tanh dense(8) relu dense(1)",
             "by the tanh at word 4: its 8 units stay within -1 and 1; dual, 1 layer", "tanh", 4,
             0.2},
        Case{"dense(16) layernorm prelu(per_unit=1) dense(8) prelu dense(1)",
             "by the layernorm at word 2: its 16 units stay in a ball of 3 dimensions", "layernorm",
             2, 0.2},
        Case{"dense(16) layernorm residual(layernorm relu dense(16)) dense(1)",
             "in a ball of 3 dimensions; dual, 1 layer, 2 sets", "layernorm", 2, 0.1},
        Case{"dense(16) softplus dense(8) sigmoid dense(1)",
             "by the sigmoid at word 4: its 8 units stay within 0 and 1; linear", "sigmoid", 4,
             0.2}}) {
    CAPTURE(of.net);
    const Trained net(of.net, "xy");
    const Ran ran =
        net.certify({"--data", net.table, "--target", "y", "--standardise", "xy", "--boxes", "0"});
    REQUIRE(ran.code == 0);
    CHECK(ran.out.find(of.said) != std::string::npos);
    const auto summary = net.summary();
    CHECK(summary["bounded"] == true);
    CHECK(summary["bounded_by"] == of.by);
    CHECK(summary["bounded_by_word"] == of.word);
    const double bound = summary["bound"], found = summary["largest_found"];
    CHECK(found <= bound);
    CHECK(found > of.least * bound);
  }
}

TEST_CASE("certify trained: no Layer Norm, no bound, and a way past any number") {
  const Trained net(kNoNorm);
  Ran ran = net.certify({"--exceed", "1e12"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("none: no layernorm, rmsnorm, tanh or sigmoid") != std::string::npos);
  CHECK(ran.out.find("passes 1e+12") != std::string::npos);
  const auto summary = net.summary();
  CHECK(summary["bounded"] == false);
  CHECK(summary["bound"].is_null());
  CHECK(summary["interval"].is_null());
  CHECK(summary["exceeded_by"].get<double>() > 1e12);

  // Bounded all the same, since its last weights are 0: nothing is claimed, either way.
  Net still(kNoNorm, 2);
  for (const char* name : {"4.weight", "4.bias"})
    for (std::size_t p = 0; p < still.layout().entries().size(); ++p)
      if (still.layout().entries()[p].name == name)
        fill(still.layout().member_view(still.flat(), p, 0), 0.25 * (name[2] == 'b'));
  save_weights(still, net.weights);
  ran = net.certify({});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("nothing is proved") != std::string::npos);
  CHECK(net.summary()["largest_found"] == 0.25);
  CHECK(net.summary()["bound"].is_null());
  CHECK(!net.summary().contains("exceeded_by"));
}

TEST_CASE("certify trained: an interval for each output") {
  const TemporaryFolder folder;
  const char* spec = "dense(8) gelu layernorm dense(3)";
  save_weights(Net(spec, 4), folder / "w.safetensors");
  const Ran ran = run_keel({"certify", "--mode", "trained", "--net", spec, "--weights",
                            folder / "w.safetensors", "--out", folder / "out", "--device", "cpu",
                            "--directions", "8", "--steps", "2"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("output 2 is never outside") != std::string::npos);
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["outputs"] == 3);
  CHECK(summary["proof"].get<std::string>().starts_with("linear, "));
  REQUIRE(summary["intervals"].size() == 3);
  double low = 0, high = 0;
  for (const auto& interval : summary["intervals"]) {
    low = std::min(low, interval[0].get<double>());
    high = std::max(high, interval[1].get<double>());
  }
  CHECK(summary["interval"][0] == low);
  CHECK(summary["interval"][1] == high);
}

TEST_CASE("certify trained: a note where the net does not fit the rows") {
  const Trained net;
  const auto reordered = [&](const std::string& weights) {  // its columns are not its file's
    return net.certify({"--data", net.table, "--target", "a", "--weights", weights});
  };
  CHECK(reordered(net.weights).code == 1);
  SafeTensors older = read_safetensors(net.weights);
  older.metadata.erase("keel.columns");  // as PyTorch's, or an older keel's
  older.metadata.erase("keel.features");
  write_safetensors(net.folder / "older.safetensors", older);
  const Ran ran = reordered(net.folder / "older.safetensors");
  CHECK(ran.code == 0);
  CHECK(ran.err.find("note: R^2 is below 0: ") != std::string::npos);
  for (const char* text : {"", "[[1, 2]", "[1, 2, 3]", "[[1, null], [1, 2], [1, 2]]"}) {
    older.metadata["keel.columns"] = text;
    write_safetensors(net.folder / "older.safetensors", older);
    CHECK(reordered(net.folder / "older.safetensors").code == (*text ? 1 : 0));
  }
  CHECK(net.certify({"--data", net.table, "--target", "y"}).err == "");
  CHECK(net.certify({}).err == "");
  older.metadata.erase("keel.columns");
  write_safetensors(net.folder / "older.safetensors", older);
  CHECK(net.certify({"--weights", net.folder / "older.safetensors"}).err ==
        fmt::format("note: {} is of a net that keel trained with --standardise x: without --data "
                    "these are that table's standardised units\n",
                    net.folder / "older.safetensors"));
  older.metadata["keel.columns"] = "[[0, 1], [0, 1]]";
  write_safetensors(net.folder / "older.safetensors", older);
  CHECK(net.certify({"--weights", net.folder / "older.safetensors"})
            .err.find("has the units of 1 features and a net of 2") != std::string::npos);
}

}  // namespace
}  // namespace keel
