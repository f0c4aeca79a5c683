// Reader and writer of .safetensors files: named tensors behind a JSON header.
// Format: https://huggingface.co/docs/safetensors
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../core/tensor.h"

namespace keel {

struct SafeTensors {
  std::map<std::string, std::string> metadata;
  std::vector<std::pair<std::string, Tensor>> tensors;  ///< on the CPU
  std::set<std::string> left_out;  ///< names of those that were not wanted of a file

  /// Null where there is none of that name.
  const Tensor* find(const std::string& name) const;

  std::set<std::string> names() const;
};

/// Reads F32 and F64 tensors of at most four axes, F16 and BF16 ones as the float32 of the same
/// values, and I64 ones, of numbers up to 2^53 in size, as the float64. Those whose names are not
/// `wanted` (none: all are) may be anything, and cost neither time nor memory. Throws keel::Error
/// with the path and what is wrong: an unreadable or truncated file, a header that is none, offsets
/// that do not fit.
SafeTensors read_safetensors(const std::string& path,
                             const std::function<bool(const std::string& name)>& wanted = {});

/// Writes a temporary file beside `path` and renames it: readers see the old file or the new one,
/// never half of one. Tensors may live on any device. Throws keel::Error where two tensors have one
/// name or one has none of its elements made, a text is no UTF-8, or `path` cannot be written; the
/// old file is then left.
void write_safetensors(const std::string& path, const SafeTensors& content);

}  // namespace keel
