#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "error.h"

namespace keel {

namespace fs = std::filesystem;

namespace {

// Where a chain of links ends, whether a file is there or not: a rename would replace the link.
// What the system itself links, like /dev/stdout, is somebody's open file.
fs::path without_links(const fs::path& path) {
  fs::path target = path;
  std::error_code problem;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, problem)); ++links) {
    check(links < 40, "output", "got '{}', whose links lead nowhere", path.string());
    const std::string text = fs::absolute(target).lexically_normal().string();
    const bool shared_memory = text.starts_with("/dev/shm/");  // a folder like any other
    check((!text.starts_with("/dev/") || shared_memory) && !text.starts_with("/proc/"), "output",
          "got '{}', wanted the path of a file", path.string());
    const fs::path next = fs::read_symlink(target, problem);
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

// Those of a folder's parents, and itself, that are not there, from the outermost.
std::vector<fs::path> missing(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code problem;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, problem); at = at.parent_path())
    result.insert(result.begin(), at);
  return result;
}

// Beside the file, of its name as far as a name may be long, and nobody else's of this process:
// another one on another machine may have its number, and what one left behind its names.
fs::path temporary_name(const fs::path& folder, const fs::path& file) {
  constexpr std::size_t kLongest = 200;
  static std::atomic<unsigned> count{0};
  return folder /
         fmt::format(".{}.{}.{}.tmp", file.string().substr(0, kLongest), getpid(), count++);
}

}  // namespace

OutputFile::Folders::~Folders() {
  for (std::size_t i = made.size(); i-- > 0;) rmdir(made[i].c_str());
}

OutputFile::OutputFile(fs::path path) : path_(std::move(path)), target_(without_links(path_)) {
  std::error_code problem;
  // A rename would replace a device or a pipe by a file.
  const fs::file_status status = fs::status(target_, problem);
  check(!target_.filename().empty() && (!fs::exists(status) || fs::is_regular_file(status)),
        "output", "got '{}', wanted the path of a file", path_.string());
  open_temporary();
  if (fs::exists(status)) fchmod(descriptor_, static_cast<mode_t>(status.permissions()));
}

void OutputFile::open_temporary() {
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  folders_.made = missing(folder);
  // Again, as others that found a folder missing may take it away between two steps, or have a file
  // of that name.
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    std::error_code problem;
    fs::create_directories(folder, problem);
    const bool again = attempt < 100;
    if (problem && again) continue;
    check(!problem, "output", "got folder '{}', which cannot be made: {}", folder.string(),
          problem.message());
    const fs::path temporary = temporary_name(folder, target_.filename());
    descriptor_ =
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    check(descriptor_ >= 0 || ((errno == ENOENT || errno == EEXIST) && again), "output",
          "cannot write to folder '{}': {}", folder.string(), std::strerror(errno));
    if (descriptor_ >= 0) temporary_ = temporary;
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::check_written(bool holds) const {
  check(holds, "output", "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    check_written(written > 0);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  check_written(fsync(descriptor_) == 0);
  const int descriptor = std::exchange(descriptor_, -1);
  check_written(close(descriptor) == 0);
  check_written(std::rename(temporary_.c_str(), target_.c_str()) == 0);
  temporary_.clear();
  folders_.made.clear();
}

}  // namespace keel
