// What Keras's and Flax's layers have or lack beside PyTorch's, and whose names a file has.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/transpose.h"
#include "../../nn/parameter_names.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "temporary.h"

using namespace keel;

TEST_CASE("weights: norms of Keras without a gain, or without a bias") {
  constexpr const char* kSpec =
      "batchnorm(affine=0) dense(3) layernorm relu dense(3) batchnorm relu dense(1)";
  const Temporary file("keras.safetensors");
  const Tensor variance = Tensor::from(std::vector<float>{0.5f, 2, 3}, {3});
  SafeTensors content;
  content.tensors = {{"n/mean", normal({2}, {9, 0})},        {"n/variance", variance.slice(0, 2)},
                     {"a/kernel", normal({2, 3}, {9, 1})},   {"a/bias", normal({3}, {9, 2})},
                     {"l/gamma", Tensor::full({3}, 1)},      {"l/beta", normal({3}, {9, 3})},
                     {"b/kernel", normal({3, 3}, {9, 4})},   {"b/bias", normal({3}, {9, 5})},
                     {"m/gamma", Tensor::full({3}, 1)},      {"m/beta", Tensor::zeros({3})},
                     {"m/moving_mean", normal({3}, {9, 6})}, {"m/moving_variance", variance},
                     {"c/kernel", normal({3, 1}, {9, 7})},   {"c/bias", normal({1}, {9, 8})}};
  const std::vector<std::string> modules = {"n", "a", "l", "b", "m", "c"};
  std::vector<std::string> missing;
  const auto loaded = [&](MissingBias biases, const std::vector<std::string>& without) {
    SafeTensors less = content;
    std::erase_if(less.tensors, [&](const auto& tensor) {
      return std::find(without.begin(), without.end(), tensor.first) != without.end();
    });
    write_safetensors(file.path(), less);
    Net net(without_batch_norms(parse_spec(kSpec)), 2, {.dtype = DType::f64});
    missing = load_weights(net, file.path(), {biases, modules, parse_spec(kSpec)});
    return net;
  };
  const Net wanted = loaded(MissingBias::refuse, {});
  CHECK(missing.empty());
  for (const std::vector<std::string>& without :
       {std::vector<std::string>{"l/gamma"}, {"m/gamma"}, {"m/beta"}, {"l/gamma", "m/beta"}}) {
    CHECK(same_bits(loaded(MissingBias::zero, without).flat(), wanted.flat()));
    CHECK(missing.size() == without.size());
    CHECK(missing[0].starts_with(without[0].substr(0, 2)));
    CHECK(message_of([&] { loaded(MissingBias::refuse, without); }).find("is missing") !=
          std::string::npos);
  }
  CHECK(missing == std::vector<std::string>{"l/weight", "m/bias"});
  const auto refused = [&](const std::vector<std::string>& without) {
    return message_of([&] { loaded(MissingBias::zero, without); });
  };
  CHECK(refused({"l/gamma", "l/beta"}).find("'l.weight' [3] is missing") != std::string::npos);
  CHECK(refused({"b/kernel"}).find("'b.weight' [3, 3] is missing") != std::string::npos);
  // PyTorch has none without a gain.
  for (auto& [name, tensor] : content.tensors) {
    if (name.ends_with("kernel")) tensor = transpose(tensor).value();
    for (const auto& [from, to] : {std::pair("/kernel", ".weight"),
                                   {"/gamma", ".weight"},
                                   {"/beta", ".bias"},
                                   {"/bias", ".bias"}})
      if (name.ends_with(from)) name = name[0] + std::string(to);
  }
  CHECK(same_bits(loaded(MissingBias::zero, {}).flat(), wanted.flat()));
  CHECK(refused({"l.weight"}).find("'l.weight' [3] is missing") != std::string::npos);
}

TEST_CASE("weights: a PReLU of Keras's and of Flax's, whose one slope has no axis") {
  const Temporary own("own.safetensors"), file("jax.safetensors");
  for (const std::string phi : {"prelu", "prelu(per_unit=1)"}) {
    const std::string spec = "dense(2) " + phi + " dense(1)";
    const Net saved(spec, 3, {.seed = 5});
    copy(saved.layout().view(saved.flat(), 2), Tensor::full({phi == "prelu" ? 1 : 2}, 0.125));
    save_weights(saved, own.path());
    for (const std::string slope : {"alpha", "negative_slope"}) {
      SafeTensors content;
      for (const auto& [name, tensor] : read_safetensors(own.path()).tensors) {
        const bool matrix = tensor.rank() == 2, bias = name.ends_with("bias");
        const bool scalar = name[0] == '1' && phi == "prelu" && slope != "alpha";
        content.tensors.emplace_back(name.substr(0, 2) + (name[0] == '1' ? slope
                                                          : bias         ? "bias"
                                                                         : "kernel"),
                                     matrix   ? transpose(tensor).value()
                                     : scalar ? tensor.reshape({})
                                              : tensor);
      }
      write_safetensors(file.path(), content);
      Net loaded(spec, 3);
      CHECK(load_weights(loaded, file.path()).empty());
      CHECK(loaded.values(2) == saved.values(2));
      CHECK(loaded.values(0) == saved.values(0));
      Net relu("dense(2) relu dense(1)", 3);
      CHECK(message_of([&] {
              load_weights(relu, file.path());
            }).ends_with("may be a PReLU's slope, the word 'prelu'"));
    }
  }
}

TEST_CASE("weights: names are listed with their numbers in order") {
  CHECK(quoted({"dense/kernel", "dense_1/bias", "dense_10/bias", "dense_2/bias"}) ==
        "'dense/kernel', 'dense_1/bias', 'dense_2/bias', 'dense_10/bias'");
  CHECK(quoted({"1.bias", "02.bias", "10.bias"}, 2) == "'1.bias', '02.bias' and 1 more");
  CHECK(quoted({}) == "none");
}

TEST_CASE("weights: whose names a file has") {
  const auto of = [](const std::vector<std::string>& names) {
    SafeTensors content;
    for (const std::string& name : names) content.tensors.emplace_back(name, Tensor::zeros({1}));
    return library_of(content);
  };
  CHECK(of({"0.weight", "0.bias", "norm.gamma"}) == keel::Library::pytorch);
  CHECK(of({"dense/kernel", "norm/gamma"}) == keel::Library::keras);
  CHECK(of({"dense/kernel", "norm/moving_mean"}) == keel::Library::keras);
  CHECK(of({"params.Dense_0.kernel", "params.norm.scale"}) == keel::Library::flax);
  CHECK(of({"dense.kernel", "norm.scale"}) == keel::Library::flax_or_keras);
  CHECK(of({}) == keel::Library::pytorch);
}
