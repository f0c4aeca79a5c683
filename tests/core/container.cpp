#include "../../core/container.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace keel;

namespace {

struct Cgroup {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("keel_" + std::to_string(::getpid()) + "_cgroup");
  Cgroup() { std::filesystem::create_directory(folder); }
  ~Cgroup() { std::filesystem::remove_all(folder); }
  void write(const char* name, const char* text) const { std::ofstream(folder / name) << text; }
  std::size_t free(std::size_t of_machine) const { return free_in_container(of_machine, folder); }
};

}  // namespace

TEST_CASE("a container's limit: what is used, files that it remembers left out") {
  const Cgroup group;
  CHECK(group.free(900) == 900);  // no container
  group.write("memory.current", "700\n");
  group.write("memory.max", "max\n");
  CHECK(group.free(900) == 900);
  group.write("memory.max", "1000\n");
  CHECK(group.free(900) == 300);
  CHECK(group.free(200) == 200);
  group.write("memory.stat", "anon 100\nfile 600\ninactive_file 400\nactive_file 150\nslab 50\n");
  CHECK(group.free(900) == 850);
  CHECK(group.free(10000) == 850);
  group.write("memory.current", "2000\n");  // more than the limit, for a moment
  CHECK(group.free(10000) == 0);
  group.write("memory.stat", "inactive_file 5000\n");
  CHECK(group.free(10000) == 1000);
}
