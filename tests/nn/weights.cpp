#include "../../nn/weights.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "../../core/random.h"
#include "../../nn/safetensors.h"
#include "../bits.h"
#include "message_of.h"
#include "temporary.h"

using namespace keel;

namespace {

constexpr const char* kSpec = "dense(2) layernorm relu dense(1)";

// As PyTorch's safetensors.torch.save_file lays out the state_dict of
// Sequential(Linear(3, 2), LayerNorm(2), ReLU(), Linear(2, 1)): metadata first, tensors in the
// order of their names, the header padded with spaces to a multiple of eight.
std::string file_of_pytorch() {
  std::string header = R"({"__metadata__":{"format":"pt"},)"
                       R"("0.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                       R"("1.bias":{"dtype":"F32","shape":[2],"data_offsets":[32,40]},)"
                       R"("1.weight":{"dtype":"F32","shape":[2],"data_offsets":[40,48]},)"
                       R"("3.bias":{"dtype":"F32","shape":[1],"data_offsets":[48,52]},)"
                       R"("3.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[52,60]}})";
  while (header.size() % 8 != 0) header += ' ';
  const std::uint64_t length = header.size();
  const float data[15] = {0.5f,  -0.5f,              // 0.bias
                          1,     2,     3, 4, 5, 6,  // 0.weight
                          0.25f, 0.75f,              // 1.bias
                          2,     3,                  // 1.weight
                          -1,                        // 3.bias
                          10,    100};               // 3.weight
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(reinterpret_cast<const char*>(data), sizeof(data));
}

}  // namespace

TEST_CASE("weights: a file laid out as PyTorch writes it") {
  const Temporary file("torch.safetensors");
  file.write(file_of_pytorch());
  for (DType dtype : {DType::f32, DType::f64}) {
    Net net(kSpec, 3, {.dtype = dtype});
    load_weights(net, file.path());
    const auto values = [&](std::size_t p) {
      return net.layout().view(net.flat(), p).to_vector<float>();
    };
    CHECK(values(0) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(values(1) == std::vector<float>{0.5f, -0.5f});
    CHECK(values(2) == std::vector<float>{2, 3});
    CHECK(values(3) == std::vector<float>{0.25f, 0.75f});
    // x = (1, 0, 0): z = (1.5, 3.5), standardised (-1, 1) but for eps, gained (-1.75, 3.75).
    const Tensor x = Tensor::from<double>({1, 0, 0}, {1, 3}).to(dtype);
    CHECK(net.predict(x).item() == doctest::Approx(100 * 3.75 - 1).epsilon(1e-4));
  }
}

TEST_CASE("weights: saved and loaded, to the bit") {
  const Temporary file("round.safetensors");
  for (std::int64_t members : {1, 3}) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const Net saved(kSpec, 3, {.members = members, .seed = 1, .dtype = dtype});
      Net loaded(kSpec, 3, {.members = members, .seed = 100, .dtype = dtype});
      save_weights(saved, file.path());
      load_weights(loaded, file.path());
      CHECK(same_bits(saved.flat(), loaded.flat()));
    }
  }
  CHECK(read_safetensors(file.path()).find("member2.3.weight")->shape() == Shape{1, 2});
}

TEST_CASE("weights: of the NTK parameterisation, as the same function in PyTorch") {
  const Temporary file("ntk.safetensors");
  const Tensor x = normal({5, 3}, {1, 0}, 1, DType::f64);
  const Net ntk(kSpec, 3, {.parameterisation = Parameterisation::ntk, .dtype = DType::f64});
  Net standard(kSpec, 3, {.seed = 9, .dtype = DType::f64});
  Net back(kSpec, 3, {.parameterisation = Parameterisation::ntk, .seed = 9, .dtype = DType::f64});
  save_weights(ntk, file.path());
  load_weights(standard, file.path());
  load_weights(back, file.path());
  const auto wanted = ntk.predict(x).to_vector<double>();
  const auto a = standard.predict(x).to_vector<double>(), b = back.predict(x).to_vector<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(a[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
    CHECK(b[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
  }
}

TEST_CASE("weights: notes stand in the file, and do not keep it from being read") {
  const Temporary file("notes.safetensors");
  const Net net(kSpec, 3);
  save_weights(net, file.path(), {{"keel.standardise", "xy"}});
  CHECK(read_safetensors(file.path()).metadata.at("keel.standardise") == "xy");
  Net loaded(kSpec, 3, {.seed = 7});
  load_weights(loaded, file.path());
  CHECK(same_bits(loaded.flat(), net.flat()));
}

TEST_CASE("weights: names behind a module's, and layers between that have none") {
  const Temporary file("module.safetensors");
  const Net saved("dense(2) layernorm relu dense(1)", 3);
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
    Net loaded(kSpec, 3, {.seed = 7});
    load_weights(loaded, file.path());
    CHECK(same_bits(loaded.flat(), saved.flat()));
  }
  Net loaded(kSpec, 3, {.seed = 7});
  // Of which layer another's weights are, nobody can tell.
  renamed([](const std::string& name) { return (name[0] == '0' ? "a." : "b.") + name; });
  CHECK(message_of([&] { load_weights(loaded, file.path()); })
            .ends_with("'0.weight' [2, 3] is missing; not used so far: 'a.0.bias', 'a.0.weight', "
                       "'b.1.bias', 'b.1.weight', 'b.3.bias', 'b.3.weight'"));

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

TEST_CASE("weights: modules with names of their own, in the SPEC's order") {
  const Temporary file("named.safetensors");
  const Net saved(kSpec, 3, {.seed = 5});
  save_weights(saved, file.path());
  SafeTensors content = read_safetensors(file.path());
  content.metadata.erase("keel.net");
  for (auto& [name, tensor] : content.tensors)
    name = (name[0] == '0' ? "body.fc" : name[0] == '1' ? "body.7.norm" : "head") + name.substr(1);
  write_safetensors(file.path(), content);
  Net loaded(kSpec, 3, {.seed = 7});
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
  CHECK(message(kSpec, {"body.fc", "head"}) ==
        "weights: got 2 modules 'body.fc head', wanted one for each of the 3 layers of 'dense(2) "
        "layernorm relu dense(1)' that have weights");
  CHECK(message(kSpec, {"head", "body.7.norm", "body.fc"}) ==
        head + "'head.weight' has shape [1, 2], wanted [2, 3]");
  CHECK(message(kSpec, {"body.fc", "norm", "head"}) ==
        head +
            "'norm.weight' [2] is missing; not used so far: 'body.7.norm.bias', "
            "'body.7.norm.weight', 'head.bias', 'head.weight'");
  CHECK(message("dense(2) layernorm(affine=0) relu dense(1)", {"body.fc", "head"}) ==
        head +
            "got 'body.7.norm.bias', 'body.7.norm.weight' too, which 'dense(2) "
            "layernorm(affine=0) relu dense(1)' does not have");
  CHECK(message(kSpec, {}).find("'0.weight' [2, 3] is missing") != std::string::npos);

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
  const Net many(kSpec, 3, {.members = 2, .seed = 5});
  save_weights(many, file.path());
  content = read_safetensors(file.path());
  for (auto& [name, tensor] : content.tensors)
    if (const std::size_t at = name.find(".3."); at != name.npos) name.replace(at, 3, ".head.");
  write_safetensors(file.path(), content);
  Net members(kSpec, 3, {.members = 2, .seed = 9});
  load_weights(members, file.path(), {.modules = {"0", "1", "head"}});
  CHECK(same_bits(members.flat(), many.flat()));
}

TEST_CASE("weights: biases that are missing are zeros where that is asked for") {
  const Temporary file("unbiased.safetensors");
  file.write(file_of_pytorch());
  SafeTensors content = read_safetensors(file.path());
  std::erase_if(content.tensors, [](const auto& tensor) {
    return tensor.first == "0.bias" || tensor.first == "1.bias";
  });
  write_safetensors(file.path(), content);
  Net net(kSpec, 3), wanted(kSpec, 3);
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

  // A layer of which there is nothing at all is not there.
  Net longer("dense(2) layernorm relu dense(1) dense(1)", 3);
  CHECK(message_of([&] {
          load_weights(longer, file.path(), {MissingBias::zero});
        }).find("'4.weight'") != std::string::npos);
  std::erase_if(content.tensors, [](const auto& tensor) { return tensor.first == "1.weight"; });
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
    Net net(kSpec, 3);
    CHECK(load_weights(net, file.path(), {MissingBias::zero}).empty());
    CHECK(net.layout().view(net.flat(), 3).to_vector<float>() == std::vector<float>{0.5f, -0.5f});
  }
  // What keel wrote has them all, or is damaged.
  save_weights(Net(kSpec, 3), file.path());
  content = read_safetensors(file.path());
  std::erase_if(content.tensors, [](const auto& tensor) { return tensor.first == "1.bias"; });
  write_safetensors(file.path(), content);
  Net net(kSpec, 3);
  CHECK(message_of([&] {
          load_weights(net, file.path(), {MissingBias::zero});
        }).find("'1.bias' [2] is missing") != std::string::npos);
}

TEST_CASE("weights: of a net that differs in what has no weights, by what save_weights wrote") {
  const Temporary file("other.safetensors");
  save_weights(Net(kSpec, 3), file.path());
  for (const char* spec :
       {"dense(2) layernorm gelu dense(1)", "dense(2) layernorm(eps=0.1) relu dense(1)"}) {
    Net net(spec, 3, {.seed = 4});
    const Tensor before = net.flat().clone();
    CHECK(message_of([&] { load_weights(net, file.path()); }) ==
          "weights: " + file.path() + " holds the weights of '" + kSpec + "', wanted those of '" +
              spec + "'");
    CHECK(same_bits(net.flat(), before));
  }
  file.write(file_of_pytorch());  // says nothing
  Net net("dense(2) layernorm gelu dense(1)", 3);
  load_weights(net, file.path());
}

TEST_CASE("weights: what does not fit is named, and the net stays as it was") {
  const Temporary file("misfit.safetensors");
  file.write(file_of_pytorch());
  const std::string head = "weights: " + file.path() + ": ";
  const auto message = [&](const char* spec, NetOptions options = {}) {
    Net net(spec, 3, options);
    const Tensor before = net.flat().clone();
    const std::string text = message_of([&] { load_weights(net, file.path()); });
    CHECK(same_bits(before, net.flat()));
    return text;
  };
  CHECK(message("dense(2) layernorm relu dense(1) dense(1)") ==
        head + "'4.weight' [1, 1] is missing; not used so far: none");
  CHECK(message("dense(2) relu layernorm dense(1)") ==
        head +
            "'2.weight' [2] is missing; not used so far: '1.bias', '1.weight', '3.bias', "
            "'3.weight'");
  CHECK(message("dense(2) layernorm relu dense(2)") ==
        head + "'3.weight' has shape [1, 2], wanted [2, 2]");
  CHECK(message("dense(2) relu relu dense(1)") ==
        head + "got '1.bias', '1.weight' too, which 'dense(2) relu relu dense(1)' does not have");
  CHECK(message(kSpec, {.members = 2}) ==
        head +
            "'member0.0.weight' [2, 3] is missing; not used so far: '0.bias', '0.weight', "
            "'1.bias', '1.weight', '3.bias', '3.weight'");
  CHECK(message(kSpec, {.parameterisation = Parameterisation::ntk, .sigma_b2 = 0}) ==
        head + "'0.bias' has no effect in the NTK parameterisation with sigma_b2 = 0, wanted > 0");
  SafeTensors many = read_safetensors(file.path());
  for (int i = 0; i < 1000; ++i)
    many.tensors.emplace_back(fmt::format("more\n{}", i), Tensor::zeros({1}));
  write_safetensors(file.path(), many);
  CHECK(
      message(kSpec).ends_with("'more?123', 'more?124' and 970 more too, which 'dense(2) "
                               "layernorm relu dense(1)' does not have"));
  file.write(file_of_pytorch());
  SafeTensors damaged = read_safetensors(file.path());
  for (auto& [name, tensor] : damaged.tensors)
    if (name == "1.weight") fill(tensor.slice(1, 2), std::numeric_limits<double>::quiet_NaN());
  write_safetensors(file.path(), damaged);
  CHECK(message(kSpec) ==
        head + "element 1 of '1.weight' is nan in float32, wanted a finite number");
  for (auto& [name, tensor] : damaged.tensors)
    if (name == "1.weight") tensor = Tensor::from<double>({1, 1e300}, {2});
  write_safetensors(file.path(), damaged);
  CHECK(message(kSpec) ==
        head + "element 1 of '1.weight' is inf in float32, wanted a finite number");
  for (auto& [name, tensor] : damaged.tensors)
    if (name == "1.weight")
      tensor = Tensor::from<double>({1, std::numeric_limits<double>::quiet_NaN()}, {2});
  write_safetensors(file.path(), damaged);
  CHECK(message(kSpec) ==
        head + "element 1 of '1.weight' is nan in float64, wanted a finite number");
  file.write(file_of_pytorch().substr(0, file_of_pytorch().size() - 4));
  CHECK(message(kSpec) == "safetensors: " + file.path() +
                              ": truncated or damaged: the tensors need 60 bytes, the file has 56");
}
