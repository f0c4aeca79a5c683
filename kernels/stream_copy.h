// Stores past the caches, where the processor has them.
#pragma once

#include <cstddef>

namespace keel {

/// Copies `bytes` to memory that nobody will read soon: of a cache line that is overwritten whole,
/// nothing is read, and none is kept. Other threads see it after stream_fence().
void stream_copy(void* to, const void* from, std::size_t bytes);

void stream_fence();

}  // namespace keel
