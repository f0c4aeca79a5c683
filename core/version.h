// What was built, and with what.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace keel {

const char* version();  ///< "0.1.0"
const char*
git_commit();  ///< "a1b2c3d", "-dirty" after it where the tree had changes, or "unknown"

/// Name and version of what this build computes with: compiler, BLAS, threads, CUDA.
std::vector<std::pair<std::string, std::string>> backends();

}  // namespace keel
