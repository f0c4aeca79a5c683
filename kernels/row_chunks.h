// Chunks of rows, whose sums a pullback leaves for sum_rows to add up in a fixed order.
#pragma once

#include <algorithm>

#include "../core/device.h"
#include "group.h"

namespace keel {

/// Of each member: rows a chunk, the last one's but for what is left, and chunks.
struct RowChunks {
  int64_t rows, count;
};

/// Where derivatives are kept `per_sample` chunks of one row leave them. Else enough chunks to fill
/// a GPU, few enough that their sums stay a small part of the traffic. It depends on the shape and
/// the kind of device alone, so results do not depend on a device's size. A few rows on a GPU are
/// shared by more groups: a chunk is done one row after another, each waiting for memory.
inline RowChunks row_chunks(Device device, int64_t member_rows, bool per_sample) {
  constexpr int64_t kSmallest = 16, kMostChunks = 8192, kFewest = 4, kFewChunks = 256;
  const auto chunks_of = [&](int64_t rows) {
    return RowChunks{rows, (member_rows + rows - 1) / rows};
  };
  if (per_sample) return chunks_of(1);
  if (device.is_cuda() && member_rows < kSmallest * kFewChunks)
    return chunks_of(std::max(kFewest, (member_rows + kFewChunks - 1) / kFewChunks));
  return chunks_of(std::max(kSmallest, (member_rows + kMostChunks - 1) / kMostChunks));
}

/// Rows [begin, end) of a chunk, all of them one member's.
struct ChunkRows {
  int64_t member, begin, end;
};

KEEL_HD inline ChunkRows rows_of_chunk(int64_t chunk, int64_t chunk_rows, int64_t member_chunks,
                                       int64_t member_rows) {
  const int64_t member = chunk / member_chunks;
  const int64_t begin = member * member_rows + chunk % member_chunks * chunk_rows;
  const int64_t member_end = (member + 1) * member_rows;
  return {member, begin, begin + chunk_rows < member_end ? begin + chunk_rows : member_end};
}

}  // namespace keel
