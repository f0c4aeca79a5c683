#include "container.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace keel {
namespace {

// Of "inactive_file 4096" and its like, one a line.
std::size_t remembered_files(const std::filesystem::path& statistics) {
  std::ifstream file(statistics);
  std::size_t sum = 0, bytes = 0;
  for (std::string key; file >> key >> bytes;)
    if (key == "inactive_file" || key == "active_file") sum += bytes;
  return sum;
}

}  // namespace

std::size_t free_in_container(std::size_t free, const std::filesystem::path& folder) {
  std::ifstream limit_file(folder / "memory.max"), used_file(folder / "memory.current");
  std::size_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return free;  // "max": no limit
  used -= std::min(used, remembered_files(folder / "memory.stat"));
  return std::min(free, limit > used ? limit - used : 0);
}

}  // namespace keel
