#include "../../nn/weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../core/random.h"
#include "../../nn/safetensors.h"
#include "../bits.h"
#include "../message_of.h"
#include "file_of_pytorch.h"
#include "temporary.h"

using namespace keel;

namespace {

constexpr const char* kSpec = "dense(2) layernorm relu dense(1)";

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

TEST_CASE("weights: of a file that has been read, and is gone") {
  const Net saved(kSpec, 3, {.seed = 1});
  SafeTensors content;
  std::string path;
  {
    const Temporary file("gone.safetensors");
    path = file.path();
    save_weights(saved, path);
    content = read_safetensors(path);
  }
  CHECK_THROWS(read_safetensors(path));
  Net loaded(kSpec, 3, {.seed = 100});
  load_weights(loaded, content, path);
  CHECK(same_bits(saved.flat(), loaded.flat()));
  Net wider("dense(3) layernorm relu dense(1)", 3);
  CHECK(message_of([&] { load_weights(wider, content, path); }).find(path) != std::string::npos);
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

TEST_CASE("weights: of the NTK parameterisation without biases, saved and loaded") {
  const Temporary file("unbiased_ntk.safetensors");
  const NetOptions options{
      .parameterisation = Parameterisation::ntk, .dtype = DType::f64, .sigma_b2 = 0};
  const Net saved(kSpec, 3, options);
  save_weights(saved, file.path());
  Net loaded = saved.clone();
  fill(loaded.flat(), 7);
  load_weights(loaded, file.path());
  const Tensor x = normal({5, 3}, {1, 0}, 1, DType::f64);
  const std::vector<double> wanted = saved.predict(x).to_vector<double>();
  const std::vector<double> got = loaded.predict(x).to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
}

TEST_CASE("weights: an RMSNorm is a gain alone, as torch.nn.RMSNorm's state_dict has it") {
  // Sequential(Linear(3, 2), RMSNorm(2), ReLU(), Linear(2, 1))
  const char* spec = "dense(2) rmsnorm relu dense(1)";
  const Temporary file("rms.safetensors");
  file.write(file_of_pytorch());
  SafeTensors content = read_safetensors(file.path());
  std::erase_if(content.tensors, [](const auto& tensor) { return tensor.first == "1.bias"; });
  write_safetensors(file.path(), content);
  Net net(spec, 3, {.dtype = DType::f64});
  CHECK(load_weights(net, file.path(), {MissingBias::zero}).empty());
  // x = (1, 0, 0): z = (1.5, 3.5), over the root of 7.25, times (2, 3).
  const Tensor x = Tensor::from<double>({1, 0, 0}, {1, 3});
  const double root = std::sqrt(7.25 + std::ldexp(1, -23));
  CHECK(net.predict(x).item() ==
        doctest::Approx(10 * 2 * 1.5 / root + 100 * 3 * 3.5 / root - 1).epsilon(1e-12));
  save_weights(net, file.path());
  Net back(spec, 3, {.seed = 8, .dtype = DType::f64});
  load_weights(back, file.path());
  CHECK(same_bits(back.flat(), net.flat()));
  CHECK(read_safetensors(file.path()).metadata.at("keel.net") == spec);
  // A Layer Norm's file has more.
  file.write(file_of_pytorch());
  CHECK(message_of([&] { load_weights(net, file.path()); }) ==
        "weights: " + file.path() + ": got '1.bias' too, which '" + spec + "' does not have");
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
        head +
            "element 0 of '0.bias' is 0.5, and '0.bias' has no effect in the NTK parameterisation "
            "with sigma_b2 = 0: wanted zeros, or sigma_b2 > 0");
  SafeTensors many = read_safetensors(file.path());
  for (int i = 0; i < 1000; ++i)
    many.tensors.emplace_back(fmt::format("more\n{}", i), Tensor::zeros({1}));
  write_safetensors(file.path(), many);
  CHECK(
      message(kSpec).ends_with("'more?28', 'more?29' and 970 more too, which 'dense(2) "
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
