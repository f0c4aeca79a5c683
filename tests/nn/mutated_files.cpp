#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "../../core/memory.h"
#include "../../nn/checkpoint.h"
#include "../../nn/safetensors.h"
#include "../../nn/spec.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../message_of.h"
#include "../mutated.h"
#include "temporary.h"

using namespace keel;
using test::Mutator;
using test::Verdicts;

namespace {

const std::vector<std::string> kWords = {"\"F32\"",
                                         "\"F64\"",
                                         "\"F16\"",
                                         "\"BF16\"",
                                         "\"dtype\"",
                                         "\"shape\"",
                                         "\"data_offsets\"",
                                         "\"__metadata__\"",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "[[[[[[[[[[",
                                         ",",
                                         ":",
                                         "0",
                                         "8",
                                         "-1",
                                         "1.5",
                                         "1e9",
                                         "4611686018427387903",
                                         "null",
                                         "\"\\n\\u001b\"",
                                         "\xff",
                                         std::string("\x00\x00\xc0\x7f", 4)};

// Half of the mutated files say how long their headers really are: what else is wrong then counts.
std::string with_true_length(std::string bytes) {
  const std::size_t end = bytes.rfind('}');
  if (bytes.size() < 8 || end == bytes.npos || end < 8) return bytes;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

// A file that no disk is waited for.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("mutated", 0)) { REQUIRE(descriptor_ >= 0); }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  void write(const std::string& bytes) const {
    REQUIRE(ftruncate(descriptor_, 0) == 0);
    REQUIRE(pwrite(descriptor_, bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
  }

 private:
  int descriptor_;
};

template <class Read>
Verdicts read_mutated_files(std::uint64_t seed, const std::vector<std::string>& sound, int count,
                            Read read) {
  const MemoryFile memory;
  int calls = 0;
  return read_mutated(Mutator(seed, kWords), sound, count, [&](const std::string& bytes) {
    const std::string content = ++calls % 2 == 0 ? bytes : with_true_length(bytes);
    memory.write(content);
    read(memory.path(), content);
  });
}

std::string bytes_of(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&](auto t) {
    return std::string(reinterpret_cast<const char*>(tensor.data<decltype(t)>()), tensor.bytes());
  });
}

// Two tensors in half precision: 1, 2 and 1, 2, 0.5.
std::string file_of_halves() {
  const std::string header = R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"BF16","shape":[3,1],"data_offsets":[4,10]}})";
  const std::uint64_t length = header.size();
  const std::uint16_t data[] = {0x3c00, 0x4000, 0x3f80, 0x4000, 0x3f00};
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(reinterpret_cast<const char*>(data), sizeof(data));
}

}  // namespace

TEST_CASE("mutated safetensors: refused, or tensors that are the file's data from end to end") {
  const Temporary file("mutated.safetensors");
  SafeTensors content;
  content.metadata["format"] = "pt";
  content.tensors.emplace_back("a", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  content.tensors.emplace_back("b", Tensor::from<double>({0.1}, {}));
  content.tensors.emplace_back("none", Tensor::zeros({0, 4}));
  write_safetensors(file.path(), content);
  reset_peak(Device::cpu());
  const std::size_t before = memory_stats(Device::cpu()).peak_in_use;
  const Verdicts verdicts = read_mutated_files(
      1, {file.read(), file_of_halves()}, 6000,
      [](const std::string& path, const std::string& bytes) {
        const auto not_a = [](const std::string& name) { return name != "a"; };
        message_of([&] { read_safetensors(path, not_a); });  // more of these are accepted
        const SafeTensors read = read_safetensors(path), some = read_safetensors(path, not_a);
        CHECK(some.tensors.size() + some.left_out.size() == read.tensors.size());
        std::uint64_t length;
        std::memcpy(&length, bytes.data(), 8);
        const std::string header = bytes.substr(8, length);
        const bool halves = header.find("F16\"") != header.npos;  // or BF16
        const bool wholes =
            header.find("F32\"") != header.npos || header.find("F64\"") != header.npos;
        std::string data;
        for (const auto& [name, tensor] : read.tensors) data += bytes_of(tensor);
        if (!halves) CHECK(data == bytes.substr(8 + length));
        if (!wholes) CHECK(data.size() == 2 * (bytes.size() - 8 - length));
        for (const auto& [name, tensor] : read.tensors) CHECK(read.find(name) != nullptr);
      });
  CHECK(verdicts.accepted > 100);
  CHECK(verdicts.refused > 1000);
  CHECK(memory_stats(Device::cpu()).peak_in_use <= before + (1 << 16));
}

TEST_CASE("mutated checkpoints: refused and nothing changed, or epochs that there is room for") {
  const Temporary file("mutated.checkpoint");
  const Checkpoint sound{"net",
                         "data",
                         "options",
                         Tensor::full({5}, 1.5),
                         {Tensor::full({5}, 2), Tensor::full({5}, 3)},
                         Tensor::from<double>({3, 2, 1, 6, 5, 4}, {2, 3}),
                         {3, 1}};
  write_checkpoint(file.path(), sound);
  const Verdicts verdicts =
      read_mutated_files(2, {file.read()}, 4000, [](const std::string& path, const std::string&) {
        Checkpoint into{"net",
                        "data",
                        "options",
                        Tensor::zeros({5}),
                        {Tensor::zeros({5}), Tensor::zeros({5})},
                        Tensor::zeros({2, 4}, DType::f64),
                        {0, 0}};
        try {
          read_checkpoint(path, into);
        } catch (const Error&) {
          CHECK(into.done == std::vector<std::int64_t>{0, 0});
          CHECK(same_bits(into.parameters, Tensor::zeros({5})));
          for (const Tensor& moment : into.moments) CHECK(same_bits(moment, Tensor::zeros({5})));
          CHECK(same_bits(into.losses, Tensor::zeros({2, 4}, DType::f64)));
          throw;
        }
        for (std::int64_t done : into.done) CHECK((done >= 0 && done <= 3));
      });
  CHECK(verdicts.accepted > 100);
  CHECK(verdicts.refused > 1000);
}

TEST_CASE("mutated weights: refused and the net unchanged, or all of them finite") {
  const Temporary file("mutated.weights");
  const Net sound("dense(2) layernorm relu dense(1)", 3);
  fill(sound.flat(), 1);  // one bit from infinity
  save_weights(sound, file.path());
  const Verdicts verdicts =
      read_mutated_files(3, {file.read()}, 5000, [](const std::string& path, const std::string&) {
        Net net("dense(2) layernorm relu dense(1)", 3, {.seed = 7});
        const Tensor before = net.flat().clone();
        try {
          load_weights(net, path);
        } catch (const Error&) {
          CHECK(same_bits(net.flat(), before));
          throw;
        }
        for (float value : net.flat().to_vector<float>()) CHECK(std::isfinite(value));
      });
  CHECK(verdicts.accepted > 100);
  CHECK(verdicts.refused > 1000);
}

TEST_CASE("mutated SPECs: refused, or a net whose text parses to itself") {
  const Mutator mutate(
      4, {"dense(",   "layernorm", "batchnorm ", "relu",   "leaky", "tanh ", "gelu ", "sigmoid ",
          "affine=0", "slope=",    "eps=",       "(",      ")",     ",",     " ",     "\n",
          "-",        "1e-5",      "2147483648", "nan",    "1e999", "\x1b",  "elu ",  "selu ",
          "alpha=",   "prelu",     "per_unit=1", "tanh=1", "beta="});
  const Verdicts verdicts = read_mutated(
      mutate,
      {"dense(128) layernorm relu dense(1)",
       "dense(3) layernorm(affine=0, eps=0.001) silu dense(2)", "dense(1)",
       "dense(3) layernorm(eps=1) dense(1)", "batchnorm dense(3) relu dense(1)",
       "dense(3) leakyrelu(slope=0.2) tanh dense(1)", "dense(3) sigmoid dense(3) softplus dense(1)",
       "dense(3) gelu(tanh=1) silu(beta=0.5) dense(1)", "dense(3) elu(alpha=0.5) selu dense(1)",
       "dense(3) prelu(slope=0.5, per_unit=1) dense(1)"},
      10000, [](const std::string& text) {
        const Spec spec = parse_spec(text);
        CHECK(parse_spec(spec_text(spec)) == spec);
        CHECK(without_batch_norms(spec).front().kind == LayerKind::dense);
        CHECK(spec_text(without_batch_norms(spec)).find("batchnorm") == std::string::npos);
        CHECK(spec.back().kind == LayerKind::dense);
        for (const LayerSpec& layer : spec) {
          CHECK((layer.kind != LayerKind::dense || layer.width >= 1));
          CHECK((std::isfinite(layer.eps) && layer.eps >= 0));
          CHECK((layer.slope >= 0 && layer.slope <= 1));
          CHECK((layer.alpha >= 0 && layer.alpha <= 100));
          CHECK((layer.beta >= 0.01 && layer.beta <= 100));
        }
      });
  CHECK(verdicts.accepted > 500);
  CHECK(verdicts.refused > 1000);
}
