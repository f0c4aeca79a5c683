#include "../../core/container.h"

#include <doctest/doctest.h>

#include "../temporary_folder.h"

using namespace keel;

TEST_CASE("a container's limit: what is used, files that it remembers left out") {
  const TemporaryFolder group;
  const auto free = [&](std::size_t of_machine) {
    return free_in_container(of_machine, group.str());
  };
  CHECK(free(900) == 900);  // no container
  group.file("memory.current", "700\n");
  group.file("memory.max", "max\n");
  CHECK(free(900) == 900);
  group.file("memory.max", "1000\n");
  CHECK(free(900) == 300);
  CHECK(free(200) == 200);
  group.file("memory.stat", "anon 100\nfile 600\ninactive_file 400\nactive_file 150\nslab 50\n");
  CHECK(free(900) == 850);
  CHECK(free(10000) == 850);
  group.file("memory.current", "2000\n");  // more than the limit, for a moment
  CHECK(free(10000) == 0);
  group.file("memory.stat", "inactive_file 5000\n");
  CHECK(free(10000) == 1000);
}
