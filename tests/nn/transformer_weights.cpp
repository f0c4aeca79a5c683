// A transformer's file: what was saved comes back, and what is no such file is refused.
#include "../../nn/transformer_weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../nn/safetensors.h"
#include "../bits.h"
#include "../message_of.h"
#include "../norm_places.h"
#include "temporary.h"

using namespace keel;

namespace {

TransformerOptions small_net() {
  return {.length = 3, .width = 4, .heads = 2, .hidden = 5, .blocks = 2, .seeds = {7}};
}

}  // namespace

TEST_CASE("transformer's file: what was saved comes back, all of it") {
  const Temporary file("transformer.safetensors");
  for (const TransformerNorms& norms : test::all_norms())
    for (const DType dtype : {DType::f32, DType::f64})
      for (const std::vector<std::uint64_t>& seeds :
           {std::vector<std::uint64_t>{3}, {~std::uint64_t{0}, 5}}) {
        TransformerOptions options = small_net();
        options.norms = norms;
        options.dtype = dtype;
        options.seeds = seeds;
        const Transformer net(options);
        copy(net.layout().view(net.flat(), 2),  // no more what the seeds draw
             normal(net.layout().view(net.flat(), 2).shape(), {9, 9}, 1, dtype));
        save_transformer(net, file.path(), {{"mine", "3"}});
        CHECK(read_safetensors(file.path()).metadata.at("mine") == "3");
        const Transformer back = load_transformer(file.path());
        CHECK(same_bits(back.flat(), net.flat()));
        CHECK(back.options().seeds == seeds);
        CHECK(back.options().norms == norms);
        const Tensor x = seeds.size() > 1 ? normal({2, 2, 3}, {1, 1}, 1, dtype)
                                          : normal({2, 3}, {1, 1}, 1, dtype);
        CHECK(same_bits(back.predict(x), net.predict(x)));
      }
}

TEST_CASE("transformer's file: of before its norms had places") {
  const Temporary file("transformer.safetensors");
  for (const bool layer_norm : {false, true}) {
    TransformerOptions options = small_net();
    options.norms.embedding = layer_norm;
    const Transformer net(options);
    save_transformer(net, file.path());
    SafeTensors content = read_safetensors(file.path());
    content.metadata.erase("transformer.norms");
    content.metadata.erase("transformer.norm");
    content.metadata["transformer.layer_norm"] = layer_norm ? "1" : "0";
    write_safetensors(file.path(), content);
    const Transformer back = load_transformer(file.path());
    CHECK(back.options().norms == options.norms);
    CHECK(same_bits(back.flat(), net.flat()));
  }
}

TEST_CASE("transformer's file: what is none is refused, with the path and the reason") {
  const Temporary file("transformer.safetensors");
  const Transformer net(small_net());
  const auto said = [&](auto change) {
    save_transformer(net, file.path());
    SafeTensors content = read_safetensors(file.path());
    change(content);
    write_safetensors(file.path(), content);
    const std::string message = message_of([&] { load_transformer(file.path()); });
    const std::string begin = "load_transformer: " + file.path() + ": ";
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  using S = SafeTensors;
  CHECK(said([](S&) {}) == "no error");
  CHECK(said([](S& s) { s.metadata.clear(); }) ==
        "got no 'transformer.length' in its metadata, wanted a file of save_transformer(), "
        "or of keel forecast --save-weights");
  CHECK(said([](S& s) { s.metadata["transformer.width"] = "4x"; }) ==
        "got '4x' for transformer.width, wanted a whole number");
  CHECK(said([](S& s) { s.metadata["transformer.seeds"] = "1,,2"; }) ==
        "got '' for transformer.seeds, wanted a whole number");
  CHECK(said([](S& s) { s.metadata["transformer.hidden"] = "99999999"; }) ==
        "got hidden 99999999, wanted at most 1048576");
  CHECK(said([](S& s) { s.metadata["transformer.blocks"] = "1000000"; }) ==
        "got 1000000 blocks and 23 tensors");
  CHECK(said([](S& s) { s.metadata["transformer.blocks"] = "1"; }) ==
        "got float32 [12, 4] for '7.weight', wanted float32 [1, 4]");
  CHECK(said([](S& s) { s.metadata["transformer.norms"] = "embedding,first"; }) ==
        "got 'embedding,first' for transformer.norms, wanted none, or some of embedding, blocks, "
        "last with commas between");
  CHECK(said([](S& s) { s.metadata["transformer.norm"] = "batchnorm"; }) ==
        "got 'batchnorm' for transformer.norm, wanted layernorm or rmsnorm");
  CHECK(said([](S& s) { s.metadata["transformer.norm"] = "rmsnorm"; }) ==
        "got 23 tensors, wanted the 22 of this transformer");
  CHECK(said([](S& s) { s.metadata["transformer.width"] = "0"; }) ==
        "transformer: got width 0, wanted at least 1");
  // Of gigabytes, if it were made before that is seen.
  CHECK(said([](S& s) {
          s.metadata["transformer.width"] = "2048";
          s.metadata["transformer.hidden"] = "1048576";
          s.metadata["transformer.length"] = "1024";
        }) == "got float32 [4, 1] for '0.weight', wanted float32 [2048, 1]");
  CHECK(said([](S& s) { s.tensors.erase(s.tensors.begin() + 1); }) == "got no tensor '0.bias'");
  CHECK(said([](S& s) { s.tensors[0].second = s.tensors[0].second.to(DType::f64); }) ==
        "got float32 [4] for '0.bias', wanted float64 [4]");
  CHECK(said([](S& s) { s.tensors.emplace_back("more", Tensor::zeros({1})); }) ==
        "got 24 tensors, wanted the 23 of this transformer");
  CHECK(said([](S& s) { s.tensors[1].second.data<float>()[2] = std::nanf(""); }) ==
        "got nan in '0.bias', wanted finite numbers");
}
