// keel certify --tail: what ends a larger net, of whatever kind that is.
#include <algorithm>
#include <cmath>

#include "../../nn/safetensors.h"
#include "helpers.h"

namespace keel {
namespace {

// As PyTorch's of an image net: convolutions, a buffer of truth values, a norm and a head.
struct LargerNet {
  TemporaryFolder folder;
  std::string path = folder / "larger.safetensors";
  std::vector<float> gain = {1, 2, -1}, bias = {0.5f, 0, 1}, weight = {1, -1, 2, 3, 0, 1};

  LargerNet() {
    SafeTensors content;
    content.tensors.emplace_back("stem.weight", Tensor::full({2, 3, 5, 5}, 7));
    content.tensors.emplace_back("stem.norm.weight", Tensor::full({2}, 7));
    content.tensors.emplace_back("norm.weight", Tensor::from(gain, {3}));
    content.tensors.emplace_back("norm.bias", Tensor::from(bias, {3}));
    content.tensors.emplace_back("head.weight", Tensor::from(weight, {2, 3}));
    content.tensors.emplace_back("norm.more.bias", Tensor::full({1}, 7));
    write_safetensors(path, content);
  }

  Ran certify(const std::string& net, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {
        "certify", "--mode",       "trained",  "--net",     net,
        "--out",   folder / "out", "--device", "cpu",       "--directions",
        "8",       "--steps",      "2",        "--weights", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
};

TEST_CASE("certify --tail: a norm and a head of a net whose other tensors are not looked at") {
  const LargerNet net;
  const Ran ran = net.certify("layernorm dense(2)", {"--modules", "norm head", "--tail"});
  REQUIRE(ran.code == 0);
  CHECK(ran.err.starts_with("note: " + net.path + " has no head.bias: taken as zeros"));
  CHECK(ran.err.ends_with("note: " + net.path +
                          ": taken to stand ahead of 'norm', and not read: 'norm.more.bias', "
                          "'stem.norm.weight', 'stem.weight'\n"));
  CHECK(ran.out.find("x is what enters 'norm', whatever makes it") != std::string::npos);
  const auto summary = json_of(net.folder / "out/summary.json");
  CHECK(summary["tail"] == true);
  CHECK(summary["net"] == "layernorm dense(2)");
  CHECK(summary["features"] == 3);
  CHECK(summary["modules"] == std::vector<std::string>{"norm", "head"});
  CHECK(summary["bounded_by_word"] == 1);
  // Of length sqrt(3) and mean 0, over all there are: no more is found than is, and nearly all.
  for (std::size_t o = 0; o < 2; ++o) {
    double middle = 0, mean = 0, squares = 0;
    const auto v = [&](std::size_t j) { return double{net.weight[3 * o + j]} * net.gain[j]; };
    for (std::size_t j = 0; j < 3; ++j) {
      middle += double{net.weight[3 * o + j]} * net.bias[j];
      mean += v(j) / 3;
    }
    for (std::size_t j = 0; j < 3; ++j) squares += std::pow(v(j) - mean, 2);
    const double half = std::sqrt(3 * squares);
    CHECK(summary["intervals"][o][0].get<double>() == doctest::Approx(middle - half).epsilon(1e-6));
    CHECK(summary["intervals"][o][1].get<double>() == doctest::Approx(middle + half).epsilon(1e-6));
  }
  CHECK(summary["found_of_interval"].get<double>() > 0.99);
  CHECK(summary["found_of_interval"].get<double>() <= 1);

  const Ran bare = net.certify("dense(2)", {"--modules", "head", "--tail"});
  CHECK(bare.code == 0);
  CHECK(json_of(net.folder / "out/summary.json")["bounded"] == false);
}

TEST_CASE("certify --tail: named to whoever would need it, and to nobody else") {
  const LargerNet net;
  const auto hinted = [&](const std::string& spec, const std::vector<std::string>& more) {
    const Ran ran = net.certify(spec, more);
    CHECK(ran.code == 1);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    return ran.err.find("--tail") == std::string::npos ? "" : ran.err;
  };
  const std::vector<std::string> modules = {"--modules", "norm head"};
  const std::string hint =
      "; as the end of a larger net, whose other layers stand ahead of it: --tail\n";
  CHECK(hinted("layernorm dense(2)", modules)
            .ends_with("got 'layernorm' (word 1) as the first layer, wanted dense(width)" + hint));
  CHECK(hinted("layernorm dense(2)", {})
            .ends_with(
                "wanted dense(width); of the end of a larger net: --tail, with its --modules\n"));
  // A whole net but for what stands before it.
  CHECK(hinted("dense(2)", {"--modules", "head"})
            .ends_with("too, which 'dense(2)' does not have" + hint));
  // Neither whole nor an end: a shape, a name, a word, a width.
  CHECK(hinted("layernorm dense(3)", modules) == "");
  CHECK(hinted("layernorm dense(2)", {"--modules", "norm hat"}) == "");
  CHECK(hinted("layernorms dense(2)", modules) == "");
  CHECK(hinted("layernorm relu", {}) == "");
  CHECK(hinted("dense(2)", {}) == "");
  // What was left out may stand within: a PReLU's slopes, statistics, a bias.
  for (const char* vector : {"act.weight", "bn.running_mean", "head.gamma"}) {
    const LargerNet within;
    SafeTensors content;
    content.tensors.emplace_back("head.weight", Tensor::from(net.weight, {2, 3}));
    content.tensors.emplace_back(vector, Tensor::full({3}, 7));
    write_safetensors(within.path, content);
    const Ran ran = within.certify("dense(2)", {"--modules", "head"});
    CHECK(ran.code == 1);
    CHECK_MESSAGE(ran.err.find("which 'dense(2)' does not have") != std::string::npos, ran.err);
    CHECK_MESSAGE(ran.err.find("--tail") == std::string::npos, ran.err);
  }
  // A whole net, of which something else is wrong.
  SafeTensors whole;
  whole.tensors.emplace_back("head.weight", Tensor::from(net.weight, {2, 3}));
  const LargerNet other;
  write_safetensors(other.path, whole);
  const Ran ran = other.certify(
      "dense(2)", {"--modules", "head", "--data", other.folder / "none.csv", "--target", "y"});
  CHECK(ran.code == 1);
  CHECK_MESSAGE(ran.err.find("--tail") == std::string::npos, ran.err);
}

TEST_CASE("certify --tail: what makes no sense is refused in one line") {
  const LargerNet net;
  const auto refused = [&](const std::string& spec, const std::vector<std::string>& more, int code,
                           const std::string& why) {
    const Ran ran = net.certify(spec, more);
    CHECK(ran.code == code);
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_MESSAGE(ran.err.find(why) != std::string::npos, ran.err);
  };
  const std::string tail = "layernorm dense(2)";
  refused(tail, {"--tail"}, 2, "--tail needs --modules: those of --weights that are the tail");
  refused(tail, {"--modules", "norm head"}, 1, "got 'layernorm' (word 1) as the first layer");
  refused("dense(2) layernorm dense(2)", {"--modules", "stem norm head"}, 1,
          "'stem.weight' has shape [2, 3, 5, 5], wanted [2, inputs]");
  refused(tail, {"--modules", "norm hat", "--tail"}, 1,
          "has no 'hat.weight' but 'head.weight', 'norm.bias', 'norm.more.bias', 'norm.weight', "
          "'stem.norm.weight', 'stem.weight'; wanted its names in --modules, without '.weight'");
  refused(tail, {"--modules", "stem.norm head", "--tail"}, 1,
          "'stem.norm.weight' has shape [2], wanted [3]");
  refused(tail, {"--modules", "norm", "--tail"}, 1, "got 1 modules 'norm', wanted one for each");
  refused("layernorm(affine=0) dense(2)", {"--modules", "head", "--tail", "--target", "y"}, 2,
          "--target is for a table");
  const std::string table = net.folder.file("t.csv", "a,b,c,y\n1,2,3,4\n5,6,7,9\n");
  refused(tail, {"--modules", "norm head", "--tail", "--data", table, "--target", "y"}, 2,
          "got --tail and --data, wanted one of them");
  const Ran infinite = run_keel(
      {"certify", "--net", "dense(8) relu dense(1)", "--data", table, "--target", "y", "--tail"});
  CHECK(infinite.code == 2);
  CHECK(infinite.err == "keel: usage: --tail is for --mode trained\n");
}

}  // namespace
}  // namespace keel
