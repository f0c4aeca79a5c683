// keel ntk, as typed.
#include <cmath>

#include "../../core/random.h"
#include "../../experiments/npy.h"
#include "../../nn/weights.h"
#include "../../ntk/infinite_kernel.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("ntk: infinite and empirical, written as .npy") {
  const TemporaryFolder folder;
  const Tensor a = normal({4, 3}, {1, 0}, 1, DType::f64), b = normal({2, 3}, {2, 0}, 1, DType::f64);
  write_npy(folder / "a.npy", a);
  write_npy(folder / "b.npy", b);
  const auto ntk = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"ntk",          "--x1",           folder / "a.npy",
                                          "--save",       folder / "k.npy", "--out",
                                          folder / "out", "--device",       "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  Ran ran =
      ntk({"--net", kNet, "--x2", folder / "b.npy", "--sigma-b2", "0.1", "--first-sigma-w2", "1"});
  REQUIRE(ran.err == "");
  CHECK(ran.out.find("[4, 2]") != std::string::npos);
  const Tensor infinite = read_npy(folder / "k.npy");
  CHECK(infinite.shape() == Shape{4, 2});
  CHECK(infinite.dtype() == DType::f64);
  InfiniteKernelOptions options;
  options.first_sigma_w2 = 1;
  options.sigma_b2 = 0.1;
  const InfiniteKernel kernel(kNet, 3, options);
  const auto x = a.to_vector<double>(), z = b.to_vector<double>();
  double rr = 0, qq = 0, c = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    rr += x[3 + i] * x[3 + i] / 3;
    qq += z[3 + i] * z[3 + i] / 3;
    c += x[3 + i] * z[3 + i] / 3;
  }
  CHECK(infinite.to_vector<double>()[3] == doctest::Approx(kernel.entry(rr, qq, c)).epsilon(1e-12));
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["mode"] == "infinite");
  CHECK(summary["sigma_b2"] == 0.1);
  CHECK(summary["first_sigma_w2"] == 1);
  CHECK(summary["shape"] == std::vector<int>{4, 2});

  ran = ntk({"--net", "dense(8) relu dense(2)", "--mode", "empirical", "--seeds", "3", "--dtype",
             "f32", "--outputs", "full"});
  REQUIRE(ran.err == "");
  CHECK(read_npy(folder / "k.npy").shape() == Shape{4, 4, 2, 2});
  CHECK(read_npy(folder / "k.npy").dtype() == DType::f32);

  // The mean over many nets is near the limit; the same net by seed or by its weights file.
  ran = ntk({"--net", "dense(256) relu dense(1)", "--mode", "empirical", "--seeds", "40"});
  REQUIRE(ran.err == "");
  const auto mean = read_npy(folder / "k.npy").to_vector<double>();
  REQUIRE(ntk({"--net", "dense(256) relu dense(1)"}).err == "");
  const auto limit = read_npy(folder / "k.npy").to_vector<double>();
  for (std::size_t i = 0; i < limit.size(); ++i)
    CHECK(std::abs(mean[i] - limit[i]) < 0.1 * limit[0]);
  save_weights(Net(kNet, 3, {.seed = 7, .dtype = DType::f64}), folder / "w.safetensors");
  REQUIRE(ntk({"--net", kNet, "--mode", "empirical", "--weights", folder / "w.safetensors"}).err ==
          "");
  const auto loaded = read_npy(folder / "k.npy").to_vector<double>();
  REQUIRE(ntk({"--net", kNet, "--mode", "empirical", "--seed", "7"}).err == "");
  const auto seeded = read_npy(folder / "k.npy").to_vector<double>();
  for (std::size_t i = 0; i < seeded.size(); ++i)
    CHECK(loaded[i] == doctest::Approx(seeded[i]).epsilon(1e-12));
}

TEST_CASE("ntk: a table's rows are inputs, too, and columns of it may be left out") {
  const TemporaryFolder folder;
  const Tensor x = normal({4, 2}, {1, 0}, 1, DType::f64);
  const auto values = x.to_vector<double>();
  std::string text = "a,day,b\n", bare;
  for (std::size_t row = 0; row < 4; ++row) {
    text += fmt::format("{},mon,{}\n", values[2 * row], values[2 * row + 1]);
    bare += fmt::format("{} {}\n", values[2 * row], values[2 * row + 1]);
  }
  write_npy(folder / "x.npy", x);
  const auto kernel = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"ntk", "--net", kNet, "--save", folder / "k.npy", "--out",
                               folder / "out", "--device", "cpu"});
    REQUIRE(run_keel(more).err == "");
    return read_npy(folder / "k.npy").to_vector<double>();
  };
  const auto wanted = kernel({"--x1", folder / "x.npy"});
  CHECK(kernel({"--x1", folder.file("t.csv", text), "--ignore", "day"}) == wanted);
  CHECK(json_of(folder / "out/summary.json")["ignore"][0] == "day");
  CHECK(kernel({"--x1", folder / "x.npy", "--x2", folder.file("b.txt", bare)}) == wanted);
}

TEST_CASE("ntk: features of two tables go by name, those of a table without names by place") {
  const TemporaryFolder folder;
  const std::string first = folder.file("first.csv", "a,b\n1,2\n3,-4\n"),
                    turned = folder.file("turned.csv", "note,b,a\nx,2,1\ny,-4,3\n"),
                    bare = folder.file("bare.csv", "1,2\n3,-4\n"),
                    other = folder.file("other.csv", "a,c\n1,2\n3,-4\n");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"ntk", "--net", kNet, "--save", folder / "k.npy", "--out",
                               folder / "out", "--device", "cpu", "--x1"});
    return run_keel(more);
  };
  const auto kernel = [&] { return read_npy(folder / "k.npy").to_vector<double>(); };
  REQUIRE(run({first}).code == 0);
  const auto wanted = kernel();
  REQUIRE(run({first, "--x2", turned}).code == 0);
  CHECK(kernel() == wanted);
  REQUIRE(run({turned, "--ignore", "note", "--x2", first}).code == 0);
  CHECK(kernel() == wanted);
  // A number is one of the first table's columns, wherever the second has it, or not at all.
  for (const std::string& second : {turned, first}) {
    REQUIRE(run({turned, "--ignore", "0", "--x2", second}).code == 0);
    CHECK(kernel() == wanted);
  }
  write_npy(folder / "x.npy", Tensor::from<double>({1, 2, 3, -4}, {2, 2}));
  CHECK(run({folder / "x.npy", "--ignore", "0"}).err ==
        "keel: usage: --ignore is of a table's columns, wanted one for --x1 or --x2\n");
  const Ran by_place = run({first, "--x2", bare});
  CHECK(by_place.err == "note: " + bare + " has no header: features are taken in their order\n");
  CHECK(kernel() == wanted);
  CHECK(run({first, "--x2", other}).err ==
        "keel: " + other + ": line 1: there is no column 'b', which is a feature of " + first +
            "\n");
}

TEST_CASE("ntk: of an ensemble's weights no kernel is made") {
  const TemporaryFolder folder;
  save_weights(Net(kNet, 1, {.members = 3}), folder / "w.safetensors");
  const Ran ran =
      run_keel({"ntk", "--net", kNet, "--mode", "empirical", "--weights", folder / "w.safetensors",
                "--x1", folder.file("x.txt", "1\n2\n"), "--save", folder / "k.npy", "--out",
                folder / "out", "--device", "cpu"});
  CHECK(ran.code == 1);
  CHECK(ran.err == "keel: empirical_kernel: " + folder / "w.safetensors" +
                       " holds an ensemble of 3 nets, wanted one net: of keel train --seeds 1\n");
}

TEST_CASE("ntk: a vector is inputs of one feature, and bad input is refused in one line") {
  const TemporaryFolder folder;
  write_npy(folder / "v.npy", Tensor::from(std::vector<double>{-1, 0, 2}, {3}));
  write_npy(folder / "m.npy", Tensor::zeros({2, 2}, DType::f64));
  const auto ntk = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"ntk",          "--net",          kNet,
                                          "--save",       folder / "k.npy", "--out",
                                          folder / "out", "--device",       "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  CHECK(ntk({"--x1", folder / "v.npy"}).code == 0);
  CHECK(read_npy(folder / "k.npy").shape() == Shape{3, 3});
  Ran ran = ntk({"--x1", folder / "v.npy", "--x2", folder / "m.npy"});
  CHECK(ran.code == 1);
  CHECK(ran.err == fmt::format("keel: ntk: {} has 1 features and {} has 2, wanted as many\n",
                               folder / "v.npy", folder / "m.npy"));
  CHECK(ntk({"--x1", folder / "none.npy"}).code == 1);
  ran = ntk({"--x1", folder / "v.npy", "--seeds", "2"});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("--mode empirical") != std::string::npos);
  CHECK(ntk({"--x1", folder / "v.npy", "--outputs", "full"}).code == 2);
  CHECK(ntk({"--x1", folder / "v.npy", "--mode", "empirical", "--kernel", "nngp"}).code == 2);
  CHECK(ntk({"--x1", folder / "v.npy", "--sigma-w2", "0"}).code == 2);
  ran = run_keel({"ntk", "--net", kNet, "--x1", folder / "v.npy", "--save", folder / "v.npy",
                  "--out", folder / "out", "--device", "cpu"});
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("keel: output: got '"));
  CHECK(read_npy(folder / "v.npy").shape() == Shape{3});
  const std::string weights = folder / "w.safetensors";
  save_weights(Net(kNet, 1), weights);
  const std::string before = content_of(weights);
  ran =
      run_keel({"ntk", "--net", kNet, "--mode", "empirical", "--x1", folder / "v.npy", "--weights",
                weights, "--save", weights, "--out", folder / "out", "--device", "cpu"});
  CHECK(ran.code == 1);
  CHECK(ran.err ==
        fmt::format("keel: output: got '{}' for two files, wanted a name for each\n", weights));
  CHECK(content_of(weights) == before);
  // 1e200 squared is no float64
  write_npy(folder / "huge.npy", Tensor::full({1, 1}, 1e200, DType::f64));
  std::vector<std::string> unbounded = {
      "ntk",   "--net",        kNoNorm,    "--x1", folder / "huge.npy", "--save", folder / "k.npy",
      "--out", folder / "out", "--device", "cpu"};
  CHECK(run_keel(unbounded).code == 1);
  unbounded.insert(unbounded.end(), {"--mode", "empirical"});
  CHECK(run_keel(unbounded).err.ends_with(": too large for f64; try smaller inputs\n"));
}

}  // namespace
}  // namespace keel
