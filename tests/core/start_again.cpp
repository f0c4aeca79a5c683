#include "../../core/start_again.h"

#include <doctest/doctest.h>

using namespace keel;

TEST_CASE("OpenBLAS's kernels are replaced where it does not know the processor alone") {
  CHECK(kernels_in_place_of("Prescott", true, true) == "SkylakeX");
  CHECK(kernels_in_place_of("Prescott", true, false) == "Haswell");
  CHECK(kernels_in_place_of("Prescott", false, false) == "");
  for (const char* known : {"Haswell", "Zen", "SkylakeX", "neoversen1", "Sandybridge"})
    CHECK(kernels_in_place_of(known, true, true) == "");
}
