#include "../../nn/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../message_of.h"
#include "temporary.h"

using namespace keel;

namespace {

std::string with_length(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

}  // namespace

TEST_CASE("safetensors: what was written is read, to the bit") {
  const Temporary file("round.safetensors");
  SafeTensors content;
  content.metadata["who"] = "a \"quoted\" name";
  content.tensors.emplace_back("odd", Tensor::from<float>({1, 2, 3}, {3, 1}));
  content.tensors.emplace_back("scalar", Tensor::from<double>({0.1}, {}));
  content.tensors.emplace_back("none", Tensor::zeros({0, 4}));
  write_safetensors(file.path(), content);

  const SafeTensors read = read_safetensors(file.path());
  CHECK(read.metadata.at("who") == "a \"quoted\" name");
  REQUIRE(read.tensors.size() == 3);
  CHECK(read.find("odd")->shape() == Shape{3, 1});
  CHECK(read.find("odd")->to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(read.find("scalar")->dtype() == DType::f64);
  CHECK(read.find("scalar")->item() == 0.1);
  CHECK(read.find("none")->shape() == Shape{0, 4});
  CHECK(read.find("nothing") == nullptr);
  std::uint64_t length;
  const std::string bytes = file.read();
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);  // data is aligned, and float64 comes first
  CHECK(bytes.size() == 8 + length + 8 + 12);
}

TEST_CASE("safetensors: half precision becomes the float32 of the same value") {
  const Temporary file("half.safetensors");
  const auto read = [&](const char* dtype, const std::vector<std::uint16_t>& bits) {
    file.write(
        with_length(fmt::format(R"({{"a":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})",
                                dtype, bits.size(), 2 * bits.size()),
                    std::string(reinterpret_cast<const char*>(bits.data()), 2 * bits.size())));
    const SafeTensors content = read_safetensors(file.path());
    REQUIRE(content.find("a")->dtype() == DType::f32);
    return content.find("a")->to_vector<float>();
  };
  const float infinity = std::numeric_limits<float>::infinity();
  // 1, -2, the largest, the smallest normal, the largest below it, the smallest of all, 1/3, zeros
  const std::vector<float> half = read("F16", {0x3c00, 0xc000, 0x7bff, 0x0400, 0x03ff, 0x8001,
                                               0x3555, 0x8000, 0x7c00, 0xfc00, 0x7e01});
  CHECK(std::vector<float>(half.begin(), half.end() - 1) ==
        std::vector<float>{1, -2, 65504, 0x1p-14f, 0x1p-14f - 0x1p-24f, -0x1p-24f, 0x1.554p-2f, 0,
                           infinity, -infinity});
  CHECK(std::signbit(half[7]));
  CHECK(std::isnan(half[10]));
  const std::vector<float> bfloat =
      read("BF16", {0x3f80, 0xc000, 0x7f7f, 0x0001, 0x3eab, 0x8000, 0x7f80, 0x7fc0});
  CHECK(std::vector<float>(bfloat.begin(), bfloat.end() - 1) ==
        std::vector<float>{1, -2, 0x1.fep127f, 0x1p-133f, 0x1.56p-2f, 0, infinity});
  CHECK(std::signbit(bfloat[5]));
  CHECK(std::isnan(bfloat[7]));
  CHECK(read("F16", {}).empty());
}

TEST_CASE("safetensors: an empty file of tensors is fine") {
  const Temporary file("empty.safetensors");
  write_safetensors(file.path(), {});
  CHECK(read_safetensors(file.path()).tensors.empty());
}

TEST_CASE("safetensors: a failed write leaves the old file and no other") {
  const Temporary file("kept.safetensors");
  file.write("precious");
  SafeTensors twice;
  twice.tensors.emplace_back("a", Tensor::zeros({1}));
  twice.tensors.emplace_back("a", Tensor::zeros({1}));
  CHECK(message_of([&] { write_safetensors(file.path(), twice); }) ==
        "safetensors: " + file.path() + ": got two tensors named 'a'");
  const auto of = [](const std::string& name, const Tensor& tensor, const std::string& note) {
    SafeTensors content;
    content.tensors.emplace_back("z", Tensor::zeros({2}));
    content.tensors.emplace_back(name, tensor);
    content.metadata["note"] = note;
    return content;
  };
  const Tensor some = Tensor::zeros({1});
  for (const auto& refused :
       {std::pair{of("__metadata__", some, ""),
                  "got a tensor named '__metadata__', which is what notes are called"},
        {of("a", {}, ""), "got a tensor 'a' that was never made or was moved from"},
        {of("a\xff", some, ""), "got a name or note that is no UTF-8"},
        {of("a", some, "\xc3"), "got a name or note that is no UTF-8"}})
    CHECK(message_of([&] { write_safetensors(file.path(), refused.first); }) ==
          "safetensors: " + file.path() + ": " + refused.second);
  CHECK(file.read() == "precious");
  CHECK(message_of([&] { write_safetensors("/dev/null/at/all", {}); }) ==
        "output: got folder '/dev/null/at', which cannot be made: Not a directory");
}

TEST_CASE("safetensors: what is not wanted may be anything, but has its place") {
  const Temporary file("larger.safetensors");
  const auto read = [&](const std::string& entries, const std::string& data) {
    file.write(with_length("{" + entries + "}", data));
    return read_safetensors(file.path(), [](const std::string& name) { return name[0] == 'w'; });
  };
  const std::string mask = R"("mask":{"dtype":"BOOL","shape":[1,1,1,3,1],"data_offsets":[0,3]},)",
                    w = R"("w":{"dtype":"F16","shape":[2],"data_offsets":[3,7]},)",
                    q = R"("q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[7,9]},)",
                    last = R"("w2":{"dtype":"F16","shape":[1],"data_offsets":[9,11]})";
  const std::string data("abc\0\x3c\0\xc0xy\0\x3c", 11);
  const SafeTensors found = read(mask + w + q + last, data);
  CHECK(found.names() == std::set<std::string>{"w", "w2"});
  CHECK(found.left_out == std::set<std::string>{"mask", "q"});
  CHECK(found.find("w")->to_vector<float>() == std::vector<float>{1, -2});
  CHECK(found.find("w2")->to_vector<float>() == std::vector<float>{1});
  CHECK(message_of([&] {
          read_safetensors(file.path());
        }).ends_with("'mask' has dtype BOOL, wanted F32, F64, F16, BF16 or I64"));
  CHECK(message_of([&] {
          read(mask + w + last, data);
        }).ends_with("'w2' lies at bytes 9 to 11, wanted from 7"));
  CHECK(message_of([&] {
          read(mask + w + q + last, data.substr(0, 10));
        }).ends_with("the tensors need 11 bytes, the file has 10"));
  CHECK(message_of([&] {
          read(R"("q":{"dtype":"BOOL","shape":[1],"data_offsets":[2,0]})", "ab");
        }).ends_with("'q' lies at bytes 2 to 0, wanted from 0"));
}

TEST_CASE("safetensors: damaged files are refused with what is wrong") {
  const Temporary file("damaged.safetensors");
  const auto message = [&](const std::string& bytes) {
    file.write(bytes);
    std::string text = message_of([&] { read_safetensors(file.path()); });
    const std::string head = "safetensors: " + file.path() + ": ";
    return text.starts_with(head) ? text.substr(head.size()) : text;
  };
  CHECK(message_of([] { read_safetensors("/no/such/file"); }) ==
        "safetensors: /no/such/file: cannot open: No such file or directory");
  CHECK(message_of([] { read_safetensors("/"); }) == "safetensors: /: got a folder, wanted a file");
  CHECK(message("abc") == "got 3 bytes, wanted at least the 8 of a header's length");
  CHECK(message("this is no such file at all") ==
        "truncated or no safetensors file: says its header has 2338328219631577204 bytes, the file "
        "has 27");
  CHECK(message("PK\3\4 and so on")
            .starts_with("truncated or no safetensors file (a zip, as torch.save, "));
  CHECK(message("\x89HDF\r\n\x1a\n and so on")
            .starts_with("truncated or no safetensors file (HDF5, as Keras's save_weights "));
  CHECK(message(with_length("{garbage}")) == "the header is no JSON object");
  CHECK(message(with_length(std::string("{}\0{}", 5))) == "the header is no JSON object");
  CHECK(message(with_length("[1, 2]")) == "the header is no JSON object");
  CHECK(message(with_length(R"({"a":3})")) ==
        "the header describes 'a' as 3, wanted dtype, shape and two data_offsets");
  CHECK(message(with_length(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})")) ==
        R"(the header describes 'a' as {"data_offsets":[0,4],"dtype":"F32","shape":[-1]}, wanted )"
        "dtype, shape and two data_offsets");
  CHECK(message(with_length(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "1234")) ==
        "'a' has dtype I32, wanted F32, F64, F16, BF16 or I64");
  CHECK(message(with_length(R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                            std::string("\1\0\0\0\0\0\x20\0", 8))) ==
        "element 0 of 'a' is 9007199254740993, wanted integers from -2^53 to 2^53");
  CHECK(message(with_length(R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                            "\xff\xff\xff\xff\xff\xff\xdf\xff")) ==
        "element 0 of 'a' is -9007199254740993, wanted integers from -2^53 to 2^53");
  CHECK(message(with_length(R"({"a":{"dtype":"F16","shape":[3],"data_offsets":[0,4]}})", "1234")) ==
        "'a' [3] of F16 has 4 bytes, wanted 3 elements of 2");
  CHECK(message(with_length(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")) ==
        "'a' [2] of F32 has 4 bytes, wanted 2 elements of 4");
  CHECK(message(with_length(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "12")) ==
        "truncated or damaged: the tensors need 4 bytes, the file has 2");
  CHECK(message(with_length(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                            "12345678")) == "'a' lies at bytes 4 to 8, wanted from 0");
  CHECK(message(with_length(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})",
                            "1234")) == "'a' has 5 axes, wanted at most 4");
  CHECK(message(with_length(
            R"({"a":{"dtype":"F32","shape":[2305843009213693952,4],"data_offsets":[0,0]}})")) ==
        "'a': shape: [2305843009213693952, 4] has more elements than 64 bits can count");
  CHECK(message(with_length(R"({"a\u001b":{"dtype":"F\n","shape":[],"data_offsets":[0,4]}})")) ==
        "'a?' has dtype F?, wanted F32, F64, F16, BF16 or I64");
  CHECK(message(with_length(R"({"__metadata__":"pt"})")) == "__metadata__ is no JSON object");
  CHECK(message(with_length(R"({"__metadata__":{"a":1}})")) ==
        "__metadata__ has 'a', which is no text");
  // Deeper than the stack is.
  const std::string brackets(1000000, '[');
  CHECK(message(with_length(R"({"a":)" + brackets + std::string(1000000, ']') + "}")) ==
        "the header is no JSON object");
  CHECK(message(with_length(R"({"a":[[]]})")) ==
        "the header describes 'a' as [[]], wanted dtype, shape and two data_offsets");
  // Brackets in a name are none.
  CHECK(message(with_length(R"({"\"[[[[[[[[[":3})")).starts_with("the header describes '"));
}

TEST_CASE("safetensors: a header of many tensors is read, and written, in the order of its size") {
  const Temporary file("many.safetensors");
  SafeTensors many;
  const Tensor one = Tensor::zeros({1});
  for (int i = 0; i < 20000; ++i) many.tensors.emplace_back(fmt::format("{}.weight", i), one);
  write_safetensors(file.path(), many);
  const SafeTensors read =
      read_safetensors(file.path(), [](const std::string& name) { return name == "7.weight"; });
  CHECK(read.tensors.size() == 1);
  CHECK(read.left_out.size() == 19999);
}
