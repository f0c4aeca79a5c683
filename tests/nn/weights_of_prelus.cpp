// A PReLU's slopes: as PyTorch's files have them, and what a file that has others is told.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "temporary.h"

using namespace keel;

TEST_CASE("weights: a PReLU's slopes, of either sign, come and go as PyTorch names them") {
  const Temporary file("prelu.safetensors");
  const std::string spec = "dense(3) prelu dense(3) identity prelu(per_unit=1) dense(1)";
  const Net saved(spec, 2, {.members = 2});
  CHECK(saved.layout().entries()[2].name == "1.weight");
  CHECK(saved.layout().entries()[5].name == "4.weight");
  for (std::int64_t s : {0, 1}) {
    CHECK(saved.values(2, s) == std::vector<double>{0.25});
    CHECK(saved.values(5, s) == std::vector<double>(3, 0.25));
  }
  copy(saved.layout().member_view(saved.flat(), 2, 1), Tensor::full({1}, -0.5));
  copy(saved.layout().member_view(saved.flat(), 5, 1),
       Tensor::from(std::vector<float>{3, 0, 0.1F}, {3}));
  save_weights(saved, file.path());
  const SafeTensors content = read_safetensors(file.path());
  REQUIRE(content.find("member1.1.weight"));
  CHECK(content.find("member1.1.weight")->shape() == Shape{1});
  CHECK(content.find("member1.4.weight")->to_vector<double>()[0] == 3);
  Net loaded(spec, 2, {.members = 2, .seed = 9});
  load_weights(loaded, file.path());
  CHECK(same_bits(loaded.flat(), saved.flat()));
}

TEST_CASE("weights: a PReLU that a SPEC or its modules do not have is named") {
  const Temporary file("prelus.safetensors");
  const std::string spec = "dense(2) prelu dense(1)", head = "weights: " + file.path() + ": ";
  const Net saved(spec, 3, {.seed = 5});
  save_weights(saved, file.path());
  SafeTensors content = read_safetensors(file.path());
  content.metadata.erase("keel.net");
  const auto load = [&](const std::string& as, std::vector<std::string> modules = {}) {
    write_safetensors(file.path(), content);
    Net net(as, 3);
    const Tensor before = net.flat().clone();
    const std::string text =
        message_of([&] { load_weights(net, file.path(), {.modules = modules}); });
    CHECK(same_bits(net.flat(), text == "no error" ? saved.flat() : before));
    return text;
  };

  CHECK(load(spec) == "no error");
  for (const std::string phi : {"relu", "leakyrelu(slope=0.25)"})
    CHECK(load("dense(2) " + phi + " dense(1)") ==
          head + "got '1.weight' too, which 'dense(2) " + phi +
              " dense(1)' does not have; '1.weight' may be a PReLU's slope, the word 'prelu'");
  CHECK(load("dense(2) prelu(per_unit=1) dense(1)") ==
        head + "'1.weight' has shape [1], wanted [2]");
  for (auto& [name, tensor] : content.tensors)
    if (name == "1.weight") tensor = Tensor::full({2}, 0.25);
  CHECK(load(spec) == head +
                          "'1.weight' has shape [2], wanted [1]; a PReLU with a slope for each "
                          "unit is the word 'prelu(per_unit=1)'");

  for (auto& [name, tensor] : content.tensors) {
    if (name == "1.weight") tensor = Tensor::full({1}, 0.25);
    name = (name[0] == '0' ? "fc" : name[0] == '1' ? "act" : "head") + name.substr(1);
  }
  CHECK(load(spec, {"fc", "act", "head"}) == "no error");
  CHECK(load("dense(2) relu dense(1)", {"fc", "head"}) ==
        head +
            "got 'act.weight' too, which 'dense(2) relu dense(1)' does not have; 'act.weight' may "
            "be a PReLU's slope, the word 'prelu', whose module is named like others");
  CHECK(load(spec, {"fc", "head"}) ==
        "weights: got 2 modules 'fc head', wanted one for each of the 3 layers of '" + spec +
            "' that have weights");
  CHECK(load(spec, {"fc", "missing", "head"}).find("'missing.weight' [1] is missing") !=
        std::string::npos);
}
