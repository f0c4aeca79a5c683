// Where the sources are, which benchmarks and tests read at run time.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace keel {

/// Those that this was built of, or what KEEL_SOURCE_DIR names, where they are elsewhere by now
/// (tests/gpu_pack.sh).
inline std::filesystem::path source_folder() {
  const char* elsewhere = std::getenv("KEEL_SOURCE_DIR");
  return elsewhere && *elsewhere ? elsewhere : KEEL_SOURCE_DIR;
}

}  // namespace keel
