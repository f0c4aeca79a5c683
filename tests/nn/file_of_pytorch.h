// A small file of weights, byte by byte.
#pragma once

#include <cstdint>
#include <string>

// As PyTorch's safetensors.torch.save_file lays out the state_dict of
// Sequential(Linear(3, 2), LayerNorm(2), ReLU(), Linear(2, 1)): metadata first, tensors in the
// order of their names, the header padded with spaces to a multiple of eight.
inline std::string file_of_pytorch() {
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
