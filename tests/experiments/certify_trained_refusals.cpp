// keel certify --mode trained: ensembles, and what is refused.
#include <algorithm>

#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "trained.h"

namespace keel {
namespace {

TEST_CASE("certify trained: a net of an ensemble") {
  const TemporaryFolder folder;
  const Net all(kNet, 2, {.members = 2, .seed = 5});
  save_weights(all, folder / "all.safetensors");
  SafeTensors one;
  for (const auto& [name, tensor] : read_safetensors(folder / "all.safetensors").tensors)
    if (name.starts_with("member1.")) one.tensors.emplace_back(name.substr(8), tensor);
  write_safetensors(folder / "one.safetensors", one);
  const auto intervals = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "certify",  "--mode", "trained",      "--net", kNet,      "--out", folder / "o",
        "--device", "cpu",    "--directions", "8",     "--steps", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_keel(arguments);
    return ran.code == 0 ? json_of(folder / "o/summary.json")["intervals"].dump() : ran.err;
  };
  const std::string of_member =
      intervals({"--weights", folder / "all.safetensors", "--member", "1"});
  CHECK(of_member == intervals({"--weights", folder / "one.safetensors"}));
  CHECK(of_member != intervals({"--weights", folder / "all.safetensors", "--member", "0"}));
  CHECK(intervals({"--weights", folder / "one.safetensors", "--member", "0"}) == of_member);
  CHECK(intervals({"--weights", folder / "all.safetensors", "--member", "2"})
            .find("got member 2, wanted one of its 2, from 0") != std::string::npos);
}

TEST_CASE("certify trained: an ensemble's nets, and what they say in the mean") {
  const TemporaryFolder folder;
  for (const char* spec : {kNet, "dense(8) relu dense(2)"}) {
    CAPTURE(spec);
    const Net all(spec, 2, {.members = 3, .seed = 5, .dtype = DType::f64});
    save_weights(all, folder / "all.safetensors");
    const Ran ran = run_keel({"certify", "--mode", "trained", "--net", spec, "--weights",
                              folder / "all.safetensors", "--out", folder / "o", "--device", "cpu",
                              "--directions", "16", "--steps", "5"});
    REQUIRE(ran.err == "");
    const nlohmann::json said = json_of(folder / "o/summary.json");
    CHECK(said["members"] == 3);
    REQUIRE(said["by_member"].size() == 3);
    // Found where it says, of the mean of what the three say.
    const auto mean_at = [&](const nlohmann::json& place) {
      const auto x = place["x"].get<std::vector<double>>();
      std::vector<double> mean(static_cast<std::size_t>(all.output_width()), 0.0);
      for (std::int64_t s = 0; s < 3; ++s) {
        const auto one = all.member(s).predict(Tensor::from(x, {1, 2})).to_vector<double>();
        for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += one[j] / 3;
      }
      double largest = 0;
      for (double value : mean) largest = std::max(largest, std::abs(value));
      return largest;
    };
    const double found = said["largest_found"].get<double>();
    CHECK(found == doctest::Approx(mean_at(said["largest_found_at"])).epsilon(1e-9));
    CHECK(found > 0);
    if (spec != kNet) {
      CHECK(said["bound"].is_null());
      CHECK(said["exceeded_by"].get<double>() >= said["exceed"].get<double>());
      CHECK(said["exceeded_by"].get<double>() ==
            doctest::Approx(mean_at(said["exceeded_at"])).epsilon(1e-9));
      CHECK(ran.out.find("mean  ") != std::string::npos);
      continue;
    }
    double low = 0, high = 0, bound = 0;
    for (std::size_t s = 0; s < 3; ++s) {
      const nlohmann::json& member = said["by_member"][s];
      low += member["intervals"][0][0].get<double>() / 3;
      high += member["intervals"][0][1].get<double>() / 3;
      bound = std::max(bound, member["bound"].get<double>());
      CHECK(member["largest_found"].get<double>() <= member["bound"].get<double>());
    }
    CHECK(said["intervals"][0][0].get<double>() == doctest::Approx(low).epsilon(1e-12));
    CHECK(said["intervals"][0][1].get<double>() == doctest::Approx(high).epsilon(1e-12));
    CHECK(found <= said["bound"].get<double>());
    CHECK(said["bound"].get<double>() < bound);
    CHECK(said["proof"] == "the mean of 3 nets' intervals");
  }
}

TEST_CASE("certify trained: what makes no sense is refused in one line") {
  const Trained net;
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& why) {
    const Ran ran = net.certify(std::move(more));
    CHECK(ran.code == code);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_MESSAGE(ran.err.find(why) != std::string::npos, ran.err);
  };
  for (const char* option :
       {"--ridge", "--ridge-relative", "--sigma-w2", "--sigma-b2", "--first-sigma-w2", "--seeds"})
    refused({option, "1"}, 2, option);
  refused({"--param", "ntk"}, 2, "--param is for --mode infinite and empirical");
  refused({"--dtype", "f32"}, 2, "--dtype");
  for (const char* option : {"--farthest", "--exceed"})
    refused({"--within", "3", option, "10"}, 2,
            fmt::format("got --within and {}, wanted one of them", option));
  for (const char* option : {"--farthest", "--exceed", "--within"})
    refused({"--ranges", net.table, option, "10"}, 2,
            fmt::format("got --ranges and {}, wanted one of them", option));
  refused({"--widen", "2"}, 2, "got --widen, wanted --ranges TABLE with it");
  for (const char* widen : {"0", "-1", "nan"})
    refused({"--ranges", net.table, "--widen", widen}, 2, widen);
  refused({"--boxes", "-1"}, 2, "-1");
  refused({"--ranges", net.folder / "none.csv"}, 1, "none.csv");
  for (const char* within : {"0", "-1", "nan", "1e46", "far"})
    refused({"--within", within}, 2, within);
  refused({"--data", net.table}, 2, "--data needs --target");
  refused({"--target", "y"}, 2, "--target is for a table");
  refused({"--standardise", "xy"}, 2, "--standardise is for a table");
  refused({"--data", net.table, "--target", "7"}, 1, "7");
  refused({"--net", kNoNorm}, 1, "w.safetensors: ");
  refused({"--modules", "0 1 3 5"}, 1,
          "keel wrote it, by layers' numbers; wanted no names of modules");
  refused({"--modules", " "}, 2, "--modules: got no words");
  refused({"--net", "dense(16) layernorm relu dense(8) relu dense(1)"}, 1, "has shape");
  refused({"--weights", net.table}, 1, "t.csv: truncated or no safetensors file");

  refused({"--data", net.table, "--target", "y", "--standardise", "xy"}, 1,
          "is of a net that keel trained with --standardise x, got xy");

  const std::string wide = net.folder.file("wide.csv", "1,2,3,4\n5,6,7,9\n");
  refused({"--data", wide, "--target", "3", "--quiet"}, 1, "has 3 features");
  SafeTensors empty;  // of no bytes, whatever its second axis says
  empty.tensors.emplace_back("0.weight", Tensor::zeros({0, std::int64_t{1} << 60}));
  write_safetensors(net.weights, empty);
  refused({}, 1, "'0.weight' has shape [0, 1152921504606846976], wanted [16, inputs]");
  net.folder.file("w.safetensors", "no tensors");
  refused({}, 1, "w.safetensors");

  // Other modes still need a table, and a trained net its weights.
  Ran ran = run_keel({"certify", "--net", kNet});
  CHECK(ran.code == 2);
  CHECK(ran.err == "keel: usage: --data is required\n");
  ran = run_keel({"certify", "--net", kNet, "--data", net.table});
  CHECK(ran.err == "keel: usage: --target is required\n");
  CHECK(run_keel({"certify", "--data", net.table, "--target", "y"}).err ==
        "keel: usage: --net is required\n");
  save_weights(Net(kNet, 2), net.weights);
  SafeTensors anonymous = read_safetensors(net.weights);
  anonymous.metadata.clear();
  write_safetensors(net.weights, anonymous);
  ran = run_keel({"certify", "--mode", "trained", "--weights", net.weights});
  CHECK(ran.code == 2);
  CHECK(ran.err ==
        "keel: usage: --net is required: " + net.weights + " does not say what it is of\n");
  ran = run_keel({"certify", "--net", kNet, "--weights", net.weights});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("wanted --mode trained") != std::string::npos);
  ran = run_keel({"certify", "--net", kNet, "--mode", "trained", "--modules", "fc1"});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("needs --weights") != std::string::npos);
  CHECK(run_keel(
            {"regress", "--net", kNet, "--mode", "trained", "--data", net.table, "--target", "y"})
            .code == 2);
  CHECK(run_keel({"certify", "--help"}).out.find("A file of `keel train` says its SPEC") !=
        std::string::npos);
}

}  // namespace
}  // namespace keel
