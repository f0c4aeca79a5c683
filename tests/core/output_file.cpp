#include "../../core/output_file.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "../full_disk.h"
#include "../message_of.h"
#include "../temporary_folder.h"

using namespace keel;

namespace {

using Names = std::vector<std::string>;

void write_file(const std::string& path, const std::string& content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
}

std::string refused(const std::string& path) {
  return message_of([&] { OutputFile{path}; });
}

}  // namespace

TEST_CASE("output file: it appears whole or not at all") {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "one");
  CHECK(content_of(folder / "a.txt") == "one");
  {
    OutputFile file(folder / "a.txt");
    file.write("half of tw");
    CHECK(content_of(folder / "a.txt") == "one");
  }
  CHECK(content_of(folder / "a.txt") == "one");
  CHECK(folder.names() == Names{"a.txt"});
  write_file(folder / "a.txt", "two");
  CHECK(content_of(folder / "a.txt") == "two");
  write_file(folder / "new/deeper/b.txt", "three");
  CHECK(content_of(folder / "new/deeper/b.txt") == "three");
}

TEST_CASE("output file: two writers of one have a temporary one each, whatever it is called") {
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("a"), std::string(255, 'n')}) {
    CAPTURE(name.size());
    OutputFile first(folder / name), second(folder / name);
    first.write("aaaa");
    second.write("bb");
    second.commit();
    CHECK(content_of(folder / name) == "bb");
    first.commit();
    CHECK(content_of(folder / name) == "aaaa");
  }
  CHECK(folder.names().size() == 2);
}

TEST_CASE("output file: a link is followed, and permissions stay") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  folder.file("target", "old");
  fs::create_directory(folder / "below");
  fs::create_symlink("../target", folder / "below/link");
  fs::create_symlink("below/link", folder / "link");
  fs::permissions(folder / "target", fs::perms::owner_read | fs::perms::owner_write);
  write_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "below/link"));
  CHECK(content_of(folder / "target") == "new");
  CHECK(fs::status(folder / "target").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  fs::create_symlink("later", folder / "dangling");
  write_file(folder / "dangling", "made");
  CHECK(content_of(folder / "later") == "made");
  CHECK(std::distance(fs::directory_iterator(folder.str()), {}) == 5);  // nothing else is left
  fs::create_symlink("round", folder / "round");
  CHECK(refused(folder / "round") ==
        "output: got '" + folder / "round" + "', whose links lead nowhere");
  fs::create_symlink("/dev/stdout", folder / "stdout");
  for (const std::string& path : {std::string("/dev/stdout"), folder / "stdout"})
    CHECK(refused(path) == "output: got '" + path + "', wanted the path of a file");
}

TEST_CASE("output file: a full disk leaves the old file and nothing else") {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  const std::string message = [&] {
    const FullDisk full;
    return message_of([&] { write_file(folder / "a.txt", std::string(5000, 'x')); });
  }();
  CHECK(message == "output: cannot write '" + folder / "a.txt" + "': File too large");
  CHECK(content_of(folder / "a.txt") == "old");
  CHECK(folder.names() == Names{"a.txt"});
}

TEST_CASE("output file: what is no path of a file, or below one, is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "x");
  for (const std::string& path : {folder.str(), std::string("/dev/null")})
    CHECK(refused(path) == "output: got '" + path + "', wanted the path of a file");
  CHECK(refused(file + "/below.csv")
            .starts_with("output: got folder '" + file + "', which cannot be made: "));
  CHECK(refused("/proc/keel/a.csv").starts_with("output: "));
  CHECK(folder.names() == Names{"file"});
}

TEST_CASE("output file: folders made for what was not written are gone again") {
  const TemporaryFolder folder;
  { const OutputFile never(folder / "c/../d/e.csv"); }
  CHECK(folder.names().empty());
  {
    const OutputFile never(folder / "a/b/never");
    write_file(folder / "a/other", "x");
  }
  CHECK(folder.names() == Names{"a"});
  CHECK_FALSE(std::filesystem::exists(folder / "a/b"));
}

TEST_CASE("output file: folders that come and go under many writers") {
  const TemporaryFolder folder;
  std::atomic<int> failures{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 200; ++i) try {
          OutputFile{folder / fmt::format("a/b{}/c{}", i % 2, writer)};
        } catch (const Error&) {
          ++failures;
        }
    });
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == 0);
}
