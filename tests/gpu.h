// Tests that need a GPU say so by name where there is none.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "../core/device.h"

namespace keel::test {

/// False, after a line that names the test, where no GPU is visible.
inline bool gpu_here(const char* test) {
  if (cuda_device_count() > 0) return true;
  fmt::print("SKIPPED {}: {}\n", test, why_no_cuda());
  return false;
}

/// Whether the GPU is one of tests/emulated_cuda, where a test has to be small.
inline bool gpu_is_emulated() {
  return cuda_device_count() > 0 && describe(Device::cuda()).name.starts_with("emulated");
}

}  // namespace keel::test
