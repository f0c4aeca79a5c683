// A PReLU of PyTorch's, which has a weight, in place of a SPEC's leaky relu, which has none.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "temporary.h"

using namespace keel;

TEST_CASE("weights: a PReLU's slope is that of the SPEC's leaky relu, or is named") {
  const Temporary file("prelu.safetensors");
  const std::string spec = "dense(2) leakyrelu(slope=0.25) dense(1)",
                    head = "weights: " + file.path() + ": ";
  const Net saved(spec, 3, {.seed = 5});
  save_weights(saved, file.path());
  SafeTensors plain = read_safetensors(file.path());
  plain.metadata.erase("keel.net");
  const auto write = [&](const std::string& name, const Tensor& slope) {
    SafeTensors content = plain;
    content.tensors.emplace_back(name, slope);
    write_safetensors(file.path(), content);
  };
  const auto load = [&](const std::string& as, std::vector<std::string> modules = {}) {
    Net net(as, 3);
    const Tensor before = net.flat().clone();
    const std::string text = message_of(
        [&] { load_weights(net, file.path(), {.modules = modules, .slopes = Slopes::compare}); });
    CHECK(same_bits(net.flat(), text == "no error" ? saved.flat() : before));
    return text;
  };
  const auto one = [](double slope) { return Tensor::full({1}, slope); };

  write("1.weight", one(0.25));
  CHECK(load(spec) == "no error");
  CHECK(load("dense(2) leakyrelu dense(1)") ==
        head +
            "'1.weight', a PReLU's slope, is 0.25, and that at word 2 of 'dense(2) leakyrelu "
            "dense(1)' 0.01: wanted 'leakyrelu(slope=0.25)' there");
  CHECK(load("dense(2) relu dense(1)") ==
        head +
            "got '1.weight' too, which 'dense(2) relu dense(1)' does not have; '1.weight' may "
            "be a PReLU's slope, the word 'leakyrelu(slope=0.25)'");
  // The SPEC can say any float32 to the bit, and has to.
  write("1.weight", one(0.2));
  CHECK(load("dense(2) leakyrelu(slope=0.2) dense(1)")
            .ends_with("wanted 'leakyrelu(slope=0.20000000298023224)' there"));
  CHECK(load("dense(2) leakyrelu(slope=0.20000000298023224) dense(1)") == "no error");
  write("1.weight", one(-0.5));
  CHECK(load(spec) ==
        head +
            "'1.weight', a PReLU's slope, is -0.5, wanted one from 0 to 1, as a 'leakyrelu' "
            "has");
  write("1.weight", Tensor::full({2}, 0.25));  // one for each unit
  CHECK(load(spec) == head + "'1.weight' has shape [2], wanted [1]");

  for (auto& [name, tensor] : plain.tensors)
    name = (name[0] == '0' ? "fc" : "head") + name.substr(1);
  write("act.weight", one(0.25));
  CHECK(load(spec, {"fc", "act", "head"}) == "no error");
  CHECK(load(spec, {"fc", "head"}) ==
        head + "got 'act.weight' too, which '" + spec +
            "' does not have; 'act.weight' may be a "
            "PReLU's slope, the word 'leakyrelu(slope=0.25)', whose module is named like "
            "others");
  CHECK(load("dense(2) leakyrelu dense(1)", {"fc", "act", "head"})
            .ends_with("wanted 'leakyrelu(slope=0.25)' there"));
  CHECK(load(spec, {"fc", "act", "other", "head"}) ==
        "weights: got 4 modules 'fc act other head', wanted one for each of the 2 layers of '" +
            spec + "' that have weights, or 3 with those of PReLUs");
  CHECK(load(spec, {"fc", "missing", "head"}).find("'missing.weight' [1] is missing") !=
        std::string::npos);

  // For a kernel, or to go on training, it is another net.
  const auto refused = [&](std::vector<std::string> modules) {
    Net net(spec, 3);
    return message_of([&] { load_weights(net, file.path(), {.modules = modules}); });
  };
  for (const auto& modules :
       std::vector<std::vector<std::string>>{{"fc", "head"}, {"fc", "act", "head"}})
    CHECK(refused(modules) == head + "got 'act.weight' too, which '" + spec +
                                  "' does not have; 'act.weight' may be a PReLU's slope, which is "
                                  "trained, and so of another kernel than a 'leakyrelu'");
}
