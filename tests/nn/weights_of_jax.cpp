// Weights by the names of Flax and Keras, whose kernels are the transposes of PyTorch's weights.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "../../core/random.h"
#include "../../kernels/transpose.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "temporary.h"

using namespace keel;

namespace {

constexpr const char* kNet = "dense(4) layernorm gelu(tanh=1) dense(4) rmsnorm relu dense(2)";
constexpr std::int64_t kInputs = 3;

// What kNet's layers are called, by their numbers, and what a norm's parameters are.
struct Library {
  std::map<char, std::string> modules;
  std::string separator, gain, shift;

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [number, name] : modules) result.push_back(name);
    return result;
  }
};

const Library kDotted{{{'0', "Dense_0"},
                       {'1', "LayerNorm_0"},
                       {'3', "Dense_1"},
                       {'4', "RMSNorm_0"},
                       {'6', "Dense_2"}},
                      ".",
                      "scale",
                      "bias"};

Library with_modules(std::map<char, std::string> modules) {
  Library library = kDotted;
  library.modules = std::move(modules);
  return library;
}

Library ahead_of_each(const std::string& ahead, const std::string& separator) {
  Library library = kDotted;
  for (auto& [number, name] : library.modules) name.insert(0, ahead);
  library.separator = separator;
  return library;
}

// As that library's users write what save_weights() wrote to `path`.
SafeTensors file_of(const Library& library, const std::string& path) {
  SafeTensors content;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    const std::string& module = library.modules.at(name[0]);
    const bool norm = name[0] == '1' || name[0] == '4', weight = name.ends_with(".weight");
    content.tensors.emplace_back(module + library.separator +
                                     (!norm    ? weight ? "kernel" : "bias"
                                      : weight ? library.gain
                                               : library.shift),
                                 tensor.rank() == 2 ? transpose(tensor).value() : tensor);
  }
  return content;
}

struct SavedNet {
  Net net{kNet, kInputs, {.seed = 5}};
  Temporary own{"own.safetensors"}, file{"jax.safetensors"};

  SavedNet() {  // with gains and biases other than 1 and 0
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p) {
      const Tensor view = net.layout().view(net.flat(), p);
      copy(view, normal(view.shape(), {3, p}));
    }
    save_weights(net, own.path());
    load_weights(net, own.path());  // what a scale and its inverse round off
  }

  SafeTensors content(const Library& library) const { return file_of(library, own.path()); }
  void write(const SafeTensors& content) const { write_safetensors(file.path(), content); }
};

TEST_CASE("weights: kernels and scales of Flax, gammas and betas of Keras") {
  const SavedNet saved;
  const auto loads = [&](const Library& library, bool by_number) {
    CAPTURE(library.names()[0]);
    saved.write(saved.content(library));
    Net loaded(kNet, kInputs, {.seed = 7});
    LoadOptions options;
    if (!by_number) options.modules = library.names();
    CHECK(load_weights(loaded, saved.file.path(), options).empty());
    CHECK(same_bits(loaded.flat(), saved.net.flat()));
  };
  loads(kDotted, false);
  loads(ahead_of_each("params.", "."), false);
  loads(ahead_of_each("params/", "/"), false);
  Library keras = ahead_of_each("functional/", "/");
  keras.gain = "gamma";
  keras.shift = "beta";
  loads(keras, false);
  // flax.nnx.Sequential counts as PyTorch's.
  const Library numbered = with_modules({{'0', "layers.0"},
                                         {'1', "layers.1"},
                                         {'3', "layers.3"},
                                         {'4', "layers.4"},
                                         {'6', "layers.6"}});
  loads(numbered, false);
  loads(numbered, true);
}

TEST_CASE("weights: a Batch Norm's statistics as Flax and Keras keep them") {
  constexpr const char* kSpec = "dense(3) batchnorm relu dense(1)";
  const Temporary file("jax.safetensors");
  const auto positive = [](std::uint64_t stream) {
    std::vector<float> values = normal({3}, {9, stream}).to_vector<float>();
    for (float& value : values) value = std::abs(value) + 0.1f;
    return Tensor::from(values, {3});
  };
  SafeTensors pytorch;
  pytorch.tensors = {{"0.weight", normal({3, 2}, {9, 0})}, {"0.bias", normal({3}, {9, 1})},
                     {"1.weight", normal({3}, {9, 2})},    {"1.bias", normal({3}, {9, 3})},
                     {"1.running_mean", positive(4)},      {"1.running_var", positive(5)},
                     {"3.weight", normal({1, 3}, {9, 6})}, {"3.bias", normal({1}, {9, 7})}};
  const auto loaded = [&](const SafeTensors& content, const std::vector<std::string>& modules) {
    write_safetensors(file.path(), content);
    Net net(without_batch_norms(parse_spec(kSpec)), 2, {.dtype = DType::f64});
    load_weights(net, file.path(), {.modules = modules, .spec = parse_spec(kSpec)});
    return net;
  };
  const Net wanted = loaded(pytorch, {});
  const std::map<std::string, std::string> linen = {{"0.weight", "params.Dense_0.kernel"},
                                                    {"0.bias", "params.Dense_0.bias"},
                                                    {"1.weight", "params.BatchNorm_0.scale"},
                                                    {"1.bias", "params.BatchNorm_0.bias"},
                                                    {"1.running_mean",
                                                     "batch_stats.BatchNorm_0.mean"},
                                                    {"1.running_var",
                                                     "batch_stats.BatchNorm_0.var"},
                                                    {"3.weight", "params.Dense_1.kernel"},
                                                    {"3.bias", "params.Dense_1.bias"}},
                                           keras = {{"0.weight", "a/kernel"},
                                                    {"0.bias", "a/bias"},
                                                    {"1.weight", "b/gamma"},
                                                    {"1.bias", "b/beta"},
                                                    {"1.running_mean", "b/moving_mean"},
                                                    {"1.running_var", "b/moving_variance"},
                                                    {"3.weight", "c/kernel"},
                                                    {"3.bias", "c/bias"}};
  const auto renamed = [&](const std::map<std::string, std::string>& names) {
    SafeTensors content = pytorch;
    for (auto& [name, tensor] : content.tensors) {
      name = names.at(name);
      if (tensor.rank() == 2) tensor = transpose(tensor).value();
    }
    return content;
  };
  const std::vector<std::string> of_linen = {"params.Dense_0", "params.BatchNorm_0",
                                             "params.Dense_1"};
  CHECK(same_bits(loaded(renamed(linen), of_linen).flat(), wanted.flat()));
  CHECK(same_bits(loaded(renamed(keras), {"a", "b", "c"}).flat(), wanted.flat()));
  // Where the statistics were not written.
  SafeTensors parameters = renamed(linen);
  std::erase_if(parameters.tensors,
                [](const auto& tensor) { return tensor.first.starts_with("batch_stats"); });
  CHECK(message_of([&] {
          loaded(parameters, of_linen);
        }).find("'params.BatchNorm_0.running_mean' [3] is missing") != std::string::npos);
}

TEST_CASE("weights: what stands behind a slash, numbers too") {
  const SavedNet saved;
  Library numbered = kDotted;
  for (auto& [number, name] : numbered.modules) name = std::string("layers/") + number;
  numbered.separator = "/";
  saved.write(saved.content(numbered));
  Net loaded(kNet, kInputs);
  CHECK(load_weights(loaded, saved.file.path()).empty());
  CHECK(same_bits(loaded.flat(), saved.net.flat()));
}

TEST_CASE("weights: a dense layer of Flax's without a bias") {
  const SavedNet saved;
  const Library library = ahead_of_each("params/", "/");
  SafeTensors content = saved.content(library);
  std::erase_if(content.tensors,
                [](const auto& tensor) { return tensor.first == "params/Dense_1/bias"; });
  saved.write(content);
  Net loaded(kNet, kInputs);
  CHECK(load_weights(loaded, saved.file.path(), {MissingBias::zero, library.names()}) ==
        std::vector<std::string>{"params/Dense_1/bias"});
}

TEST_CASE("weights: what does not fit is named as Flax's file has it") {
  const SavedNet saved;
  saved.write(saved.content(kDotted));
  const auto message = [&](const char* spec, const std::vector<std::string>& modules) {
    Net net(spec, kInputs);
    return message_of([&] { load_weights(net, saved.file.path(), {.modules = modules}); });
  };
  CHECK(message("dense(5) layernorm gelu dense(4) rmsnorm relu dense(2)", kDotted.names())
            .ends_with("'Dense_0.kernel' has shape [3, 4], wanted [3, 5]"));
  CHECK(message("dense(4) layernorm relu dense(4) rmsnorm relu dense(2)",
                {"Dense_0", "Dense_1", "Dense_1", "RMSNorm_0", "Dense_2"})
            .ends_with("'Dense_1.kernel' has shape [4, 4], wanted [4]"));
  CHECK(message("dense(4) layernorm relu dense(4) relu dense(2)",
                {"Dense_0", "LayerNorm_0", "Dense_1", "Dense_2"})
            .ends_with("got 'RMSNorm_0.scale' too, which 'dense(4) layernorm relu dense(4) relu "
                       "dense(2)' does not have"));
  CHECK(message("dense(4) layernorm relu dense(4) rmsnorm relu dense(2)",
                {"Dense_0", "Norm", "Dense_1", "RMSNorm_0", "Dense_2"})
            .find("'Norm.weight' [4] is missing; not used so far: 'Dense_1.bias', "
                  "'Dense_1.kernel', 'Dense_2.bias'") != std::string::npos);
  // A name that PyTorch has goes before what another library would call it.
  SafeTensors both = saved.content(kDotted);
  both.tensors.emplace_back("Dense_0.weight", Tensor::zeros({4, 3}));
  saved.write(both);
  CHECK(message(kNet, kDotted.names()).find("got 'Dense_0.kernel' too") != std::string::npos);
}

}  // namespace
