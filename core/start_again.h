// Environment variables that libraries read as they are loaded: a program that wants another value
// has to start itself again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel {

struct Setting {
  const char* name;
  std::string value;
};

/// Replaces this process by itself, with these set, unless there are none. Goes on where that
/// cannot be done.
void start_again_with(char** argv, const std::vector<Setting>& settings);

/// OPENBLAS_CORETYPE, where OpenBLAS has taken kernels far below what this processor can do, as it
/// does with those that are younger than itself, and nobody has set it; else nothing.
std::vector<Setting> better_blas_kernels();

/// What OpenBLAS should take in place of `taken` on a processor with these instructions; "" where
/// that will do.
std::string kernels_in_place_of(std::string_view taken, bool avx2_and_fma, bool avx512);

}  // namespace keel
