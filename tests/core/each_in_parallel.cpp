#include "../../core/each_in_parallel.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "../../core/threads.h"

namespace keel {
namespace {

TEST_CASE("each_in_parallel: every part once, and an exception of one when all have ended") {
  for (std::size_t count : {0, 1, 2, 100}) {
    std::vector<int> visits(count, 0);
    const auto visit = [&](std::size_t i) {
      ++visits[i];
      if (i == 1) throw std::runtime_error("part 1");
    };
    if (count > 1)
      CHECK_THROWS_WITH_AS(each_in_parallel(count, visit), "part 1", std::runtime_error);
    else
      each_in_parallel(count, visit);
    CHECK(visits == std::vector<int>(count, 1));
  }
}

TEST_CASE("each_in_parallel: one part alone is in no parallel region") {
  each_in_parallel(1, [](std::size_t) { CHECK(!inside_parallel_region()); });
  CHECK_THROWS_WITH_AS(each_in_parallel(1, [](std::size_t) { throw std::runtime_error("it"); }),
                       "it", std::runtime_error);
}

}  // namespace
}  // namespace keel
