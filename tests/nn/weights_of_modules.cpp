// Weights of nets that PyTorch has in ways of its own: a module's names, no biases, shared ones.
#include <doctest/doctest.h>

#include <set>

#include "../../core/random.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "file_of_pytorch.h"
#include "temporary.h"

using namespace keel;

namespace {

constexpr const char* kModuleNet = "dense(2) layernorm relu dense(1)";

SafeTensors without(SafeTensors content, const std::set<std::string>& names) {
  std::erase_if(content.tensors, [&](const auto& tensor) { return names.contains(tensor.first); });
  return content;
}

}  // namespace

TEST_CASE("weights: names behind a module's, and layers between that have none") {
  const Temporary file("module.safetensors");
  const Net saved(kModuleNet, 3);
  save_weights(saved, file.path());
  SafeTensors content = read_safetensors(file.path());
  content.metadata.erase("keel.net");
  const auto renamed = [&](auto name_of) {
    SafeTensors other = content;
    for (auto& [name, tensor] : other.tensors) name = name_of(name);
    write_safetensors(file.path(), other);
  };
  for (const char* ahead : {"_orig_mod.net.", "net2.", "0.", "4.body.1."}) {
    CAPTURE(ahead);
    renamed([&](const std::string& name) { return ahead + name; });
    Net loaded(kModuleNet, 3, {.seed = 7});
    load_weights(loaded, file.path());
    CHECK(same_bits(loaded.flat(), saved.flat()));
  }
  Net loaded(kModuleNet, 3, {.seed = 7});
  // A number at the end of a name is part of it.
  renamed([](const std::string& name) { return "layer" + name; });
  CHECK(message_of([&] {
          load_weights(loaded, file.path());
        }).ends_with("; names that are no numbers are given by --modules"));
  // Of which layer another's weights are, nobody can tell.
  renamed([](const std::string& name) { return (name[0] == '0' ? "a." : "b.") + name; });
  CHECK(message_of([&] { load_weights(loaded, file.path()); })
            .ends_with("'0.weight' [2, 3] is missing; not used so far: 'a.0.bias', 'a.0.weight', "
                       "'b.1.bias', 'b.1.weight', 'b.3.bias', 'b.3.weight'; names that are no "
                       "numbers are given by --modules"));

  // Sequential(Flatten, Linear, LayerNorm, ReLU, Dropout, Linear)
  renamed([](const std::string& name) {
    return fmt::format("{}{}", name[0] == '3' ? '5' : static_cast<char>(name[0] + 1),
                       name.substr(1));
  });
  Net between("identity dense(2) layernorm relu identity dense(1)", 3, {.seed = 7});
  load_weights(between, file.path());
  CHECK(same_bits(between.flat(), saved.flat()));
  const Tensor x = normal({5, 3}, {1, 0});
  CHECK(same_bits(between.predict(x), saved.predict(x)));
  Net without("identity dense(2) layernorm relu dense(1)", 3);
  CHECK(message_of([&] { load_weights(without, file.path()); })
            .ends_with("'4.weight' [1, 2] is missing; not used so far: '5.bias', '5.weight'; a "
                       "layer without weights, as Dropout, is the word 'identity'"));
}

TEST_CASE("weights: layers of a residual, by two numbers or by modules' names") {
  const Temporary file("residual.safetensors");
  const char* spec = "dense(3) residual(layernorm dense(3)) dense(1)";
  const Net saved(spec, 2, {.seed = 5});
  save_weights(saved, file.path());
  Net loaded(spec, 2, {.seed = 7});
  load_weights(loaded, file.path());
  CHECK(same_bits(loaded.flat(), saved.flat()));
  const SafeTensors content = read_safetensors(file.path());
  const auto loads = [&](auto name_of, const std::vector<std::string>& modules = {}) {
    SafeTensors other = content;
    other.metadata.erase("keel.net");
    for (auto& [name, tensor] : other.tensors) name = name_of(name);
    write_safetensors(file.path(), other);
    Net net(spec, 2, {.seed = 7});
    load_weights(net, file.path(), {.modules = modules});
    CHECK(same_bits(net.flat(), saved.flat()));
  };
  for (const char* ahead : {"", "net.", "_orig_mod.4.net."})
    loads([&](const std::string& name) { return ahead + name; });
  // Of a class whose words are a Sequential of its own.
  loads([](const std::string& name) { return name[0] == '1' ? "1.body" + name.substr(1) : name; },
        {"0", "1.body.0", "1.body.1", "2"});
  CHECK(message_of([&] {
          loads([](const std::string& name) { return "a" + name; });
        }).find("names that are no numbers are given by --modules") != std::string::npos);
  loads([](const std::string& name) { return name; });  // the file as it was
  Net without("dense(3) layernorm dense(3) dense(1)", 2);
  CHECK(message_of([&] {
          load_weights(without, file.path());
        }).ends_with("; layers of two numbers are those of the word 'residual(...)'"));
  // Sequential(LayerNorm, Dropout, Linear) within
  loads(
      [](const std::string& name) {
        return name.starts_with("1.1") ? "1.2" + name.substr(3) : name;
      },
      {"0", "1.0", "1.2", "2"});
  Net between(spec, 2);
  CHECK(message_of([&] { load_weights(between, file.path()); })
            .ends_with("'1.1.weight' [3, 3] is missing; not used so far: '1.2.bias', '1.2.weight', "
                       "'2.bias', '2.weight'; a layer without weights, as Dropout, is the word "
                       "'identity'"));
}

TEST_CASE("weights: modules with names of their own, in the SPEC's order") {
  const Temporary file("named.safetensors");
  const Net saved(kModuleNet, 3, {.seed = 5});
  save_weights(saved, file.path());
  SafeTensors content = read_safetensors(file.path());
  content.metadata.erase("keel.net");
  for (auto& [name, tensor] : content.tensors)
    name = (name[0] == '0' ? "body.fc" : name[0] == '1' ? "body.7.norm" : "head") + name.substr(1);
  write_safetensors(file.path(), content);
  Net loaded(kModuleNet, 3, {.seed = 7});
  load_weights(loaded, file.path(), {.modules = {"body.fc", "body.7.norm", "head"}});
  CHECK(same_bits(loaded.flat(), saved.flat()));

  const std::string head = "weights: " + file.path() + ": ";
  const auto message = [&](const char* spec, std::vector<std::string> modules) {
    Net net(spec, 3);
    const Tensor before = net.flat().clone();
    const std::string text =
        message_of([&] { load_weights(net, file.path(), {.modules = modules}); });
    CHECK(same_bits(before, net.flat()));
    return text;
  };
  CHECK(message(kModuleNet, {"body.fc", "head"}) ==
        "weights: got 2 modules 'body.fc head', wanted one for each of the 3 layers of 'dense(2) "
        "layernorm relu dense(1)' that have weights");
  CHECK(message(kModuleNet, {"head", "body.7.norm", "body.fc"}) ==
        head + "'head.weight' has shape [1, 2], wanted [2, 3]");
  CHECK(message(kModuleNet, {"body.fc", "norm", "head"}) ==
        head +
            "'norm.weight' [2] is missing; not used so far: 'body.7.norm.bias', "
            "'body.7.norm.weight', 'head.bias', 'head.weight'");
  CHECK(message("dense(2) layernorm(affine=0) relu dense(1)", {"body.fc", "head"}) ==
        head +
            "got 'body.7.norm.bias', 'body.7.norm.weight' too, which 'dense(2) "
            "layernorm(affine=0) relu dense(1)' does not have");
  CHECK(message(kModuleNet, {})
            .ends_with("'head.weight'; names that are no numbers are given by --modules"));
  CHECK(message("dense(2) relu dense(1)", {"body.fc", "body.fc2"})
            .ends_with("'head.bias', 'head.weight'"));

  // One Layer Norm that a forward() calls twice stands once in the file.
  const char* twice = "dense(2) layernorm relu dense(2) layernorm relu dense(1)";
  content.tensors.emplace_back("between.weight", normal({2, 2}, {1, 0}));
  write_safetensors(file.path(), content);
  Net shared(twice, 3);
  CHECK(load_weights(
            shared, file.path(),
            {MissingBias::zero, {"body.fc", "body.7.norm", "between", "body.7.norm", "head"}}) ==
        std::vector<std::string>{"between.bias"});
  for (std::size_t p : {2u, 3u})
    CHECK(same_bits(shared.layout().view(shared.flat(), p),
                    shared.layout().view(shared.flat(), p + 4)));
  CHECK(same_bits(shared.layout().view(shared.flat(), 2), saved.layout().view(saved.flat(), 2)));

  // Of an ensemble, behind its members.
  const Net many(kModuleNet, 3, {.members = 2, .seed = 5});
  save_weights(many, file.path());
  Net members(kModuleNet, 3, {.members = 2, .seed = 9});
  const auto load_members = [&] {
    load_weights(members, file.path(), {.modules = {"0", "1", "head"}});
  };
  CHECK(message_of(load_members) ==
        head + "keel wrote it, by layers' numbers; wanted no names of modules");
  content = read_safetensors(file.path());
  content.metadata.erase("keel.net");
  for (auto& [name, tensor] : content.tensors)
    if (const std::size_t at = name.find(".3."); at != name.npos) name.replace(at, 3, ".head.");
  write_safetensors(file.path(), content);
  load_members();
  CHECK(same_bits(members.flat(), many.flat()));
}

TEST_CASE("weights: biases that are missing are zeros where that is asked for") {
  const Temporary file("unbiased.safetensors");
  file.write(file_of_pytorch());
  SafeTensors content = read_safetensors(file.path());
  content = without(content, {"0.bias", "1.bias"});
  write_safetensors(file.path(), content);
  Net net(kModuleNet, 3), wanted(kModuleNet, 3);
  const Tensor before = net.flat().clone();
  CHECK(message_of([&] { load_weights(net, file.path()); })
            .ends_with("'0.bias' [2] is missing; not used so far: '1.weight', '3.bias', "
                       "'3.weight'; without a bias a layer has another kernel"));
  CHECK(same_bits(net.flat(), before));
  CHECK(load_weights(net, file.path(), {MissingBias::zero}) ==
        std::vector<std::string>{"0.bias", "1.bias"});
  file.write(file_of_pytorch());
  CHECK(load_weights(wanted, file.path(), {MissingBias::zero}).empty());
  for (std::size_t p : {1u, 3u}) fill(wanted.layout().view(wanted.flat(), p), 0);
  CHECK(same_bits(net.flat(), wanted.flat()));

  // Of a layer that is called twice it is missing once.
  for (auto& [name, tensor] : content.tensors)
    name = (name[0] == '0' ? "fc" : name[0] == '1' ? "norm" : "head") + name.substr(1);
  content.tensors.emplace_back("fc2.weight", Tensor::zeros({2, 2}));
  write_safetensors(file.path(), content);
  Net twice("dense(2) layernorm relu dense(2) layernorm relu dense(1)", 3);
  CHECK(load_weights(twice, file.path(),
                     {MissingBias::zero, {"fc", "norm", "fc2", "norm", "head"}}) ==
        std::vector<std::string>{"fc.bias", "norm.bias", "fc2.bias"});
  file.write(file_of_pytorch());
  content = read_safetensors(file.path());
  content = without(content, {"0.bias", "1.bias"});
  write_safetensors(file.path(), content);

  // A layer of which there is nothing at all is not there.
  Net longer("dense(2) layernorm relu dense(1) dense(1)", 3);
  CHECK(message_of([&] {
          load_weights(longer, file.path(), {MissingBias::zero});
        }).find("'4.weight'") != std::string::npos);
  content = without(content, {"1.weight"});
  write_safetensors(file.path(), content);
  CHECK(message_of([&] {
          load_weights(net, file.path(), {MissingBias::zero});
        }).find("'1.weight'") != std::string::npos);
}

TEST_CASE("weights: a bias that is another's is no bias that is missing") {
  // torch: net[1].bias = net[0].bias; safetensors.torch.save_model(net, file)
  const Temporary file("shared.safetensors");
  file.write(file_of_pytorch());
  SafeTensors content = read_safetensors(file.path());
  for (const char* ahead : {"", "net."}) {
    CAPTURE(ahead);
    SafeTensors shared;
    for (const auto& [name, tensor] : content.tensors)
      if (name != "1.bias") shared.tensors.emplace_back(ahead + name, tensor);
    shared.metadata[fmt::format("{}1.bias", ahead)] = fmt::format("{}0.bias", ahead);
    write_safetensors(file.path(), shared);
    Net net(kModuleNet, 3);
    CHECK(load_weights(net, file.path(), {MissingBias::zero}).empty());
    CHECK(net.layout().view(net.flat(), 3).to_vector<float>() == std::vector<float>{0.5f, -0.5f});
  }
  // A note about something else is none of that; nor is a matrix's, which may be transposed.
  SafeTensors other = content;
  for (auto& [name, tensor] : other.tensors) name = "net." + name;
  other.metadata = {{"last_layer", "net.3.weight"}, {"net.by", "me"}, {"net.1.bias", "net.0.bias"}};
  write_safetensors(file.path(), other);
  Net net(kModuleNet, 3);
  load_weights(net, file.path());
  CHECK(net.layout().view(net.flat(), 3).to_vector<float>() == std::vector<float>{0.25f, 0.75f});
  // The name that is written may be none of the net's.
  for (auto& [name, tensor] : other.tensors)
    name = name == "net.0.bias" ? "shared.bias" : name.replace(0, 4, "layer.");
  other.metadata = {{"layer.0.bias", "shared.bias"}};
  write_safetensors(file.path(), other);
  CHECK(load_weights(net, file.path(), {MissingBias::zero, {"layer.0", "layer.1", "layer.3"}})
            .empty());
  CHECK(net.layout().view(net.flat(), 1).to_vector<float>() == std::vector<float>{0.5f, -0.5f});
  const char* square = "dense(3) relu dense(3) relu dense(1)";
  const Net tied(square, 3);
  save_weights(tied, file.path());
  other = read_safetensors(file.path());
  other.metadata = {{"2.weight", "0.weight"}};
  other = without(other, {"2.weight"});
  write_safetensors(file.path(), other);
  Net untied(square, 3);
  CHECK(message_of([&] {
          load_weights(untied, file.path(), {MissingBias::zero});
        }).ends_with("; it shares '0.weight', perhaps transposed: wanted its numbers"));
  // Nor is a bias zero that is said to be somewhere where it is not.
  other = content;
  other.metadata = {{"1.bias", "2.bias"}};
  other = without(other, {"1.bias"});
  write_safetensors(file.path(), other);
  CHECK(message_of([&] {
          load_weights(net, file.path(), {MissingBias::zero});
        }).find("'1.bias' [2] is missing") != std::string::npos);
  // What keel wrote has them all, or is damaged.
  save_weights(Net(kModuleNet, 3), file.path());
  content = read_safetensors(file.path());
  content = without(content, {"1.bias"});
  write_safetensors(file.path(), content);
  CHECK(message_of([&] {
          load_weights(net, file.path(), {MissingBias::zero});
        }).ends_with("'1.bias' [2] is missing; not used so far: '3.bias', '3.weight'"));
}
