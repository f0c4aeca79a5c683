// What a container lets its processes have.
#pragma once

#include <cstddef>
#include <filesystem>

namespace keel {

/// What a container's limit leaves of `free` bytes of memory: beyond it the kernel kills, it does
/// not refuse. Files that it remembers count as used there, but it forgets them first. `folder` is
/// its cgroup's, of version 2; without one, or a limit, all of `free`.
std::size_t free_in_container(std::size_t free,
                              const std::filesystem::path& folder = "/sys/fs/cgroup");

}  // namespace keel
