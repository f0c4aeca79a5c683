// Chunks of rows, whose sums a pullback leaves for sum_rows to add up in a fixed order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../core/device.h"

namespace keel {

/// Rows a chunk: enough chunks to fill a GPU, few enough that their sums stay a small part of the
/// traffic. It depends on the shape and the kind of device alone, so results do not depend on a
/// device's size. A few rows on a GPU are shared by more groups: a chunk is done one row after
/// another, each waiting for memory.
inline std::int64_t rows_per_chunk(Device device, std::int64_t rows) {
  constexpr std::int64_t kSmallest = 16, kMostChunks = 8192, kFewest = 4, kFewChunks = 256;
  if (device.is_cuda() && rows < kSmallest * kFewChunks)
    return std::max(kFewest, (rows + kFewChunks - 1) / kFewChunks);
  return std::max(kSmallest, (rows + kMostChunks - 1) / kMostChunks);
}

}  // namespace keel
