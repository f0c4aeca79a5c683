// The file of a checkpoint: what is none of this training's is refused, and what was there is kept.
#include <doctest/doctest.h>

#include <filesystem>

#include "../../nn/checkpoint.h"
#include "../../nn/safetensors.h"
#include "../../nn/trainer.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../full_disk.h"
#include "../message_of.h"
#include "checkpointed_training.h"
#include "temporary.h"

using namespace keel;

TEST_CASE("checkpoint: one that cannot be written is refused before anything is trained") {
  Net net(kCheckpointedSpec, 2);
  const Tensor before = net.flat().clone();
  CHECK(message_of([&] {
          train(net, inputs(), targets(), {.epochs = 2, .checkpoint = "/dev/null/at/all"});
        }) == "output: got folder '/dev/null/at', which cannot be made: Not a directory");
  CHECK(same_bits(net.flat(), before));
}

TEST_CASE("checkpoint: of another net, other data or other options is refused") {
  const Temporary file("other.checkpoint");
  const std::string head = "checkpoint: " + file.path() + ": ";
  const TrainOptions options{.epochs = 2, .checkpoint = file.path(), .resume = true};
  Net net(kCheckpointedSpec, 2);
  {
    TrainOptions fresh = options;
    fresh.resume = false;
    train(net, inputs(), targets(), fresh);
  }
  const auto message = [&](Net of, const Tensor& x, const TrainOptions& with) {
    const Tensor before = of.flat().clone();
    const std::string text = message_of([&] { train(of, x, targets(), with); });
    CHECK(same_bits(of.flat(), before));
    return text;
  };
  const std::string mine =
      "dense(17) layernorm relu dense(1) on 2 inputs, standard, sigma_w2 2, "
      "first 2, sigma_b2 0.01, seeds 0, float32 on cpu";
  CHECK(net_text(net) == mine);
  CHECK(message(Net(kCheckpointedSpec, 2, {.seeds = {3, 4}}), inputs(), options) ==
        head + "is of net '" + mine + "', wanted 'dense(17) layernorm relu dense(1) on 2 inputs, " +
            "standard, sigma_w2 2, first 2, sigma_b2 0.01, seeds 3,4, float32 on cpu'");
  CHECK(message(Net(kCheckpointedSpec, 2, {.first_sigma_w2 = 1}), inputs(), options)
            .find("first 1,") != std::string::npos);
  CHECK(message(Net(kCheckpointedSpec, 2), normal({30, 2}, {5, 0}), options) ==
        head + "is of a training on other inputs, wanted the same, in the same units");
  TrainOptions slower = options;
  slower.optimiser = AdamOptions{.lr = 0.1};
  slower.batch = 5;
  CHECK(message(Net(kCheckpointedSpec, 2), inputs(), slower) ==
        head +
            "is of options 'adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08), batch 0, shuffle "
            "seed 0', wanted 'adam(lr=0.1, beta1=0.9, beta2=0.999, eps=1e-08), batch 5, shuffle "
            "seed 0'");

  const SafeTensors sound = read_safetensors(file.path());
  for (const char* name : {"parameters", "moment1", "done"}) {
    SafeTensors other = sound;
    for (auto& [key, tensor] : other.tensors)
      if (key == name) tensor = tensor.to(tensor.dtype() == DType::f32 ? DType::f64 : DType::f32);
    write_safetensors(file.path(), other);
    const bool was_double = sound.find(name)->dtype() == DType::f64;
    CHECK(message(Net(kCheckpointedSpec, 2), inputs(), options) ==
          fmt::format("{}'{}' is {}, wanted {}", head, name, was_double ? "float32" : "float64",
                      was_double ? "float64" : "float32"));
  }
  SafeTensors half = sound;
  for (auto& [key, tensor] : half.tensors)
    if (key == "done") tensor = Tensor::full({1}, 1.5, DType::f64);
  write_safetensors(file.path(), half);
  CHECK(message(Net(kCheckpointedSpec, 2), inputs(), options) ==
        head + "member 0 has done 1.5 epochs, wanted at most 2");
  SafeTensors content = sound;
  content.metadata["format"] = "pt";
  write_safetensors(file.path(), content);
  CHECK(message(Net(kCheckpointedSpec, 2), inputs(), options) ==
        head + "got format 'pt', wanted 'keel checkpoint 1'");
  file.write("");
  CHECK(message(Net(kCheckpointedSpec, 2), inputs(), options) ==
        "safetensors: " + file.path() +
            ": got 0 bytes, wanted at least the 8 of a header's length");
  std::filesystem::remove(file.path());
  CHECK(message(Net(kCheckpointedSpec, 2), inputs(), options) ==
        "safetensors: " + file.path() + ": cannot open: No such file or directory");
}

TEST_CASE("checkpoint: texts tell the weights' distributions apart, and how many share the GPU") {
  CHECK(net_text(Net(kCheckpointedSpec, 2, {.weights = Distribution::uniform})) !=
        net_text(Net(kCheckpointedSpec, 2)));
  CHECK(training_text({.sharers = 2}) != training_text({}));
}

TEST_CASE("checkpoint: fingerprints tell shapes, dtypes and bits apart") {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  CHECK(fingerprint(x) == fingerprint(x.clone()));
  CHECK(fingerprint(x) != fingerprint(x.reshape({4, 1})));
  CHECK(fingerprint(x) != fingerprint(x.to(DType::f64)));
  CHECK(fingerprint(Tensor::from<float>({0}, {1})) !=
        fingerprint(Tensor::from<float>({-0.0f}, {1})));
}

TEST_CASE("checkpoint: an earlier one stays where it is until there is another") {
  const Temporary file("run.checkpoint"), earlier("run.checkpoint.old");
  const auto begin = [&](const std::string& at) {
    Net net(kCheckpointedSpec, 2);
    TrainOptions options{.epochs = 2, .checkpoint = at, .earlier_checkpoint = earlier.path()};
    return message_of([&] { train(net, inputs(), targets(), options); });
  };
  CHECK(begin(file.path()) == "no error");
  const std::string first = file.read();
  CHECK(first.size() > 1000);
  const std::string message = [&] {
    const FullDisk full;
    return begin(file.path());
  }();
  CHECK(message == "output: cannot write '" + file.path() + "': File too large");
  CHECK(file.read() == first);

  CHECK(begin(file.path()) == "no error");
  CHECK(earlier.read() == first);
  CHECK(file.read().size() > 1000);
  // With none to displace, what was displaced before stays.
  std::filesystem::remove(file.path());
  CHECK(begin(file.path()) == "no error");
  CHECK(earlier.read() == first);
  // A link is displaced itself, as what it names is written to.
  const Temporary link("link.checkpoint");
  const std::string of_the_link = file.read();
  REQUIRE(of_the_link != first);  // the seconds it took
  std::filesystem::create_symlink(file.path(), link.path());
  CHECK(begin(link.path()) == "no error");
  CHECK(earlier.read() == of_the_link);
}

TEST_CASE("checkpoint: one that is gone on from is not set aside") {
  const Temporary file("run.checkpoint"), earlier("run.checkpoint.old");
  TrainOptions options{
      .epochs = 2, .checkpoint = file.path(), .earlier_checkpoint = earlier.path()};
  Net net(kCheckpointedSpec, 2);
  train(net, inputs(), targets(), options);
  options.epochs = 4;
  options.resume = true;
  train(net, inputs(), targets(), options);
  CHECK(!std::filesystem::exists(earlier.path()));
}

TEST_CASE("checkpoint: a file that is something else is not displaced, and none by itself") {
  const Temporary file("run.checkpoint"), earlier("run.checkpoint.old");
  const auto begin = [&](const std::string& at, const std::string& aside) {
    Net net(kCheckpointedSpec, 2);
    return message_of([&] {
      train(net, inputs(), targets(), {.epochs = 2, .checkpoint = at, .earlier_checkpoint = aside});
    });
  };
  const auto refusal = [](const std::string& path) {
    return "checkpoint: got '" + path +
           "', where a file is that is no checkpoint, wanted another name";
  };
  for (const bool weights : {false, true}) {
    if (weights)
      save_weights(Net(kCheckpointedSpec, 2), file.path());
    else
      file.write("notes");
    const std::string before = file.read();
    CHECK(begin(file.path(), earlier.path()) == refusal(file.path()));
    CHECK(begin(file.path(), "") == refusal(file.path()));
    CHECK(begin(earlier.path(), file.path()) == refusal(file.path()));
    CHECK(file.read() == before);
    CHECK(!std::filesystem::exists(earlier.path()));
  }
  std::filesystem::remove(file.path());
  REQUIRE(begin(file.path(), "") == "no error");
  const std::string kept = file.read();
  CHECK(begin(file.path(), file.path()).find("which are one file") != std::string::npos);
  CHECK(file.read() == kept);
}
