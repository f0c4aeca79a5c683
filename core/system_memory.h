// Memory as the system and CUDA's driver give it, below the pool of memory.cu, which alone asks.
#pragma once

#include <cstddef>

#include "device.h"

namespace keel::detail {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// From here on requests are cut finer, and look at free memory first.
constexpr std::size_t kLarge = 64 * kMiB;

/// At least `bytes` bytes; null where they cannot be had. Throws DeviceError while a graph is
/// recorded, and for CUDA's other errors.
void* system_allocate(Device device, std::size_t bytes);
void system_free(Device device, void* data) noexcept;

/// Has a GPU's driver keep what is freed, which by default it gives back whenever it is waited for.
void keep_what_is_freed(Device device);

/// Gives back what a GPU's driver keeps, once all that runs is done.
void system_trim(Device device);

}  // namespace keel::detail
