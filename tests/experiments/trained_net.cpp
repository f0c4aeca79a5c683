// Nets of PyTorch's, as certify and ntk take them.
#include <cmath>

#include "../../core/random.h"
#include "../../experiments/npy.h"
#include "../../kernels/transpose.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "helpers.h"

namespace keel {
namespace {

TEST_CASE("certify trained: a module's net with a Dropout, without biases, in half precision") {
  const TemporaryFolder folder;
  const Net small("dense(4) layernorm relu dense(1)", 2, {.seed = 5});
  save_weights(small, folder / "w.safetensors");
  // Sequential(Linear(bias=False), LayerNorm(bias=False), ReLU, Dropout, Linear) as `self.net`, in
  // bfloat16: the upper half of a float32's bits.
  std::string header = "{", data;
  for (const auto& [name, tensor] : read_safetensors(folder / "w.safetensors").tensors) {
    if (name == "0.bias" || name == "1.bias") continue;
    const std::size_t begin = data.size();
    for (float value : tensor.to_vector<float>())
      data.append(reinterpret_cast<const char*>(&value) + 2, 2);
    header += fmt::format(R"({}"net.{}{}":{{"dtype":"BF16","shape":{},"data_offsets":[{},{}]}})",
                          begin == 0 ? "" : ",", name[0] == '3' ? '4' : name[0], name.substr(1),
                          tensor.shape(), begin, data.size());
  }
  header += "}";
  const std::uint64_t length = header.size();
  folder.file("w.safetensors",
              std::string(reinterpret_cast<const char*>(&length), 8) + header + data);
  const auto certify = [&](const char* spec) {
    return run_keel({"certify", "--mode", "trained", "--net", spec, "--weights",
                     folder / "w.safetensors", "--out", folder / "out", "--device", "cpu",
                     "--directions", "8", "--steps", "2"});
  };
  Ran ran = certify("dense(4) layernorm relu identity dense(1)");
  CHECK(
      ran.err ==
      fmt::format("note: {} has no 0.bias, 1.bias: taken as zeros, as PyTorch's bias=False "
                  "means; not so of a torch.nn.RMSNorm, which is the word 'rmsnorm', or where the "
                  "writer left out what two layers share\n",
                  folder / "w.safetensors"));
  REQUIRE(ran.code == 0);
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["net"] == "dense(4) layernorm relu identity dense(1)");
  CHECK(summary["features"] == 2);
  CHECK(summary["zero_biases"] == std::vector<std::string>{"0.bias", "1.bias"});
  // The gain is 1 and there is no bias: relu of what has length 2 at most, times the last weights.
  double squares = 0;
  for (double w : small.values(4)) squares += w * w;
  CHECK(summary["bound"].get<double>() <
        2.01 * std::sqrt(squares) + 1.01 * std::abs(small.values(5)[0]));
  CHECK(summary["largest_found"].get<double>() > 0.05 * summary["bound"].get<double>());
  ran = certify("dense(4) layernorm relu dense(1)");
  CHECK(ran.code == 1);
  CHECK(ran.err.ends_with("is the word 'identity'\n"));
  ran = certify("identity identity dense(4) layernorm relu dense(1)");
  CHECK(ran.code == 1);
  CHECK(ran.err.find("has no '2.weight' but 'net.0.weight', 'net.1.weight', ") !=
        std::string::npos);
}

TEST_CASE("certify trained: a file of Flax's is the same net, whole or from its norm on") {
  const TemporaryFolder folder;
  const char* spec = "dense(4) layernorm gelu(tanh=1) dense(2)";
  const std::string ours = folder / "ours.safetensors", flax = folder / "flax.safetensors";
  save_weights(Net(spec, 3, {.seed = 5}), ours);
  SafeTensors content;
  for (const auto& [name, tensor] : read_safetensors(ours).tensors) {
    const bool matrix = tensor.rank() == 2, weight = name.ends_with(".weight");
    content.tensors.emplace_back((name[0] == '0'   ? "Dense_0/"
                                  : name[0] == '1' ? "LayerNorm_0/"
                                                   : "Dense_1/") +
                                     std::string(matrix   ? "kernel"
                                                 : weight ? "scale"
                                                          : "bias"),
                                 matrix ? transpose(tensor).value() : tensor);
  }
  write_safetensors(flax, content);
  const auto certify = [&](const std::string& net, const std::string& weights,
                           const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "certify", "--mode",    "trained", "--net",        net, "--out",   folder / "o", "--device",
        "cpu",     "--weights", weights,   "--directions", "8", "--steps", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  const auto intervals = [&](const Ran& ran) {
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return json_of(folder / "o/summary.json")["intervals"].dump();
  };
  const std::string names = "Dense_0 LayerNorm_0 Dense_1", end = "layernorm gelu(tanh=1) dense(2)";
  CHECK(intervals(certify(spec, flax, {"--modules", names})) == intervals(certify(spec, ours, {})));
  const auto note_of = [&](const std::string& norm) {
    return certify("dense(4) " + norm + " gelu(tanh=1) dense(2)", flax, {"--modules", names}).err;
  };
  const std::string note =
      "note: " + flax +
      " has another library's names: unless its layers were told otherwise, SPEC wants ";
  CHECK(note_of("layernorm") ==
        note + "layernorm(eps=1e-6) in Flax; layernorm(eps=1e-3) in Keras\n");
  CHECK(note_of("layernorm(eps=1e-6)") == "");
  CHECK(certify(spec, ours, {}).err == "");
  CHECK(certify("dense(4) layernorm(eps=1e-6) gelu dense(2)", flax, {"--modules", names}).err ==
        note + "gelu(tanh=1) in Flax\n");
  CHECK(
      certify("dense(4) layernorm(eps=1e-6) leakyrelu dense(2)", flax, {"--modules", names}).err ==
      note + "leakyrelu(slope=0.3), or 0.2 of \"leaky_relu\" in Keras\n");
  // Where a gamma says that it is Keras's, or params that it is Flax's, the other is not named.
  const auto renamed = [&](const std::function<std::string(std::string)>& rename) {
    SafeTensors other;
    for (const auto& [name, tensor] : content.tensors)
      other.tensors.emplace_back(rename(name), tensor);
    write_safetensors(folder / "other.safetensors", other);
    return "note: " + folder / "other.safetensors" + note.substr(6 + flax.size());
  };
  const std::string of_keras = renamed([](std::string name) {
    return name.ends_with("scale") ? name.substr(0, name.size() - 5) + "gamma" : name;
  });
  CHECK(certify("dense(4) layernorm gelu dense(2)", folder / "other.safetensors",
                {"--modules", names})
            .err == of_keras + "layernorm(eps=1e-3) in Keras\n");
  const std::string of_flax = renamed([](const std::string& name) { return "params/" + name; });
  CHECK(certify("dense(4) layernorm gelu dense(2)", folder / "other.safetensors",
                {"--modules", "params/Dense_0 params/LayerNorm_0 params/Dense_1"})
            .err == of_flax + "layernorm(eps=1e-6), gelu(tanh=1) in Flax\n");
  // --modules is for files that keel has not written.
  SafeTensors anonymous = read_safetensors(ours);
  anonymous.metadata.clear();
  write_safetensors(ours, anonymous);
  CHECK(intervals(certify(end, flax, {"--modules", "LayerNorm_0 Dense_1", "--tail"})) ==
        intervals(certify(end, ours, {"--modules", "1 3", "--tail"})));

  const Ran ran = certify("dense(5) layernorm gelu dense(2)", flax, {"--modules", names});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("'Dense_0/kernel' has shape [3, 4], wanted [inputs, 5]") != std::string::npos);
}

TEST_CASE("certify trained: a net of PyTorch's with Batch Norms, as it is in evaluation") {
  const TemporaryFolder folder;
  const char* spec = "batchnorm dense(3) layernorm relu batchnorm dense(1)";
  const Net drawn("dense(3) layernorm relu dense(1)", 2, {.seed = 5});
  const std::string weights = folder / "w.safetensors", named = folder / "named.safetensors";
  const auto vector = [](std::vector<float> values) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  };
  save_weights(drawn, weights);
  SafeTensors content = read_safetensors(weights);
  content.metadata.clear();
  for (auto& [name, tensor] : content.tensors)
    name[0] = name[0] == '3' ? '5' : static_cast<char>(name[0] + 1);
  for (const char* at : {"0", "4"}) {
    const std::vector<float> some =
        *at == '0' ? std::vector<float>{2, 3} : std::vector<float>{0.5f, 1, 2};
    for (const char* what : {".weight", ".bias", ".running_mean", ".running_var"})
      content.tensors.emplace_back(std::string(at) + what, vector(some));
  }
  write_safetensors(weights, content);
  for (auto& [name, tensor] : content.tensors)
    name = std::string(name[0] == '0'   ? "bn_in"
                       : name[0] == '1' ? "fc"
                       : name[0] == '2' ? "norm"
                       : name[0] == '4' ? "bn"
                                        : "head") +
           name.substr(1);
  write_safetensors(named, content);
  const auto certify = [&](const std::string& net, const std::string& file,
                           std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "certify",      "--mode",   "trained", "--net",        net, "--weights", file, "--out",
        folder / "out", "--device", "cpu",     "--directions", "8", "--steps",   "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  REQUIRE(certify(spec, weights, {}).err == "");
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["net"] == spec);
  CHECK(summary["features"] == 2);
  CHECK(summary["bounded_by_word"] == 3);
  CHECK(summary["bounded"] == true);
  CHECK(summary["largest_found"].get<double>() > 0.05 * summary["bound"].get<double>());
  // What is behind the Layer Norm: head . (g (relu(u) - m) / s + b).
  const std::vector<double> head = drawn.values(4), stated = {0.5, 1, 2};
  double constant = drawn.values(5)[0], squares = 0;
  for (std::size_t j = 0; j < 3; ++j) {
    const double gain = stated[j] / std::sqrt(stated[j] + 1e-5);
    constant += head[j] * (stated[j] - gain * stated[j]);
    squares += head[j] * gain * head[j] * gain;
  }
  CHECK(summary["bound"].get<double>() < 1.001 * (std::abs(constant) + std::sqrt(3 * squares)));
  REQUIRE(certify(spec, named, {"--modules", "bn_in fc norm bn head"}).err == "");
  CHECK(json_of(folder / "out/summary.json")["interval"] == summary["interval"]);

  Ran ran = certify("identity dense(3) layernorm relu identity dense(1)", weights, {});
  CHECK(ran.code == 1);
  CHECK(ran.err.ends_with("; running statistics are a Batch Norm's, the word 'batchnorm'\n"));
  ran = certify("batchnorm dense(3) layernorm relu batchnorm relu dense(1)", weights, {});
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("keel: batch_norm: batchnorm at word 5 of "));
  write_npy(folder / "x.npy", normal({3, 2}, {1, 0}, 1, DType::f64));
  ran = run_keel({"ntk", "--net", spec, "--mode", "empirical", "--weights", weights, "--x1",
                  folder / "x.npy", "--save", folder / "k.npy", "--out", folder / "ntk"});
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("keel: empirical_kernel: got 'batchnorm dense(3) "));
  CHECK(!std::filesystem::exists(folder / "k.npy"));
}

TEST_CASE("certify and ntk: a module's own names, in the SPEC's order") {
  const TemporaryFolder folder;
  const char* spec = "dense(4) layernorm relu dense(1)";
  const std::string own = folder / "w.safetensors", named = folder / "named.safetensors";
  const Net small(spec, 2, {.seed = 5});
  save_weights(small, own);
  SafeTensors content = read_safetensors(own);
  content.metadata.clear();
  for (auto& [name, tensor] : content.tensors)
    name = (name[0] == '0' ? "fc1" : name[0] == '1' ? "norm" : "head") + name.substr(1);
  write_safetensors(named, content);
  const auto certify = [&](const std::string& weights, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "certify",      "--mode",   "trained", "--net",        spec, "--weights", weights, "--out",
        folder / "out", "--device", "cpu",     "--directions", "8",  "--steps",   "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  REQUIRE(certify(own, {}).err == "");
  const auto wanted = json_of(folder / "out/summary.json");
  CHECK(!wanted.contains("modules"));
  CHECK(!wanted.contains("zero_biases"));
  REQUIRE(certify(named, {"--modules", " fc1  norm head "}).err == "");
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["interval"] == wanted["interval"]);
  CHECK(summary["largest_found"] == wanted["largest_found"]);
  CHECK(summary["modules"] == std::vector<std::string>{"fc1", "norm", "head"});

  Ran ran = certify(named, {});
  CHECK(ran.code == 1);
  CHECK(ran.err ==
        fmt::format("keel: weights: {} has no '0.weight' but 'fc1.bias', 'fc1.weight', "
                    "'head.bias', 'head.weight', 'norm.bias', 'norm.weight'; wanted a "
                    "torch.nn.Sequential's names, where a layer without weights, as Flatten, is "
                    "the word 'identity'; or name the modules: --modules\n",
                    named));
  ran = certify(named, {"--modules", "fc1.weight norm head"});
  CHECK(ran.code == 1);
  CHECK(ran.err.ends_with("wanted its names in --modules, without '.weight'\n"));
  ran = certify(named, {"--modules", "fc1 head"});
  CHECK(ran.code == 1);
  CHECK(ran.err.find("got 2 modules 'fc1 head', wanted one for each of the 3 layers") !=
        std::string::npos);

  write_npy(folder / "x.npy", normal({3, 2}, {1, 0}, 1, DType::f64));
  const auto ntk = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "ntk",    "--net",          spec,    "--mode",       "empirical", "--x1", folder / "x.npy",
        "--save", folder / "k.npy", "--out", folder / "out", "--device",  "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  };
  REQUIRE(ntk({"--weights", own}).err == "");
  const Tensor kernel = read_npy(folder / "k.npy");
  REQUIRE(ntk({"--weights", named, "--modules", "fc1 norm head"}).err == "");
  CHECK(same_bits(read_npy(folder / "k.npy"), kernel));
  CHECK(json_of(folder / "out/summary.json")["modules"] ==
        std::vector<std::string>{"fc1", "norm", "head"});
  ran = ntk({"--weights", named});
  CHECK(ran.code == 1);
  CHECK(ran.err.ends_with("; names that are no numbers are given by --modules\n"));
  ran = ntk({"--modules", "fc1 norm head"});
  CHECK(ran.code == 2);
  CHECK(ran.err == "keel: usage: --modules names the layers of --weights, which is not given\n");
}

}  // namespace
}  // namespace keel
