#include "../../experiments/output.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "../../core/error.h"
#include "../full_disk.h"
#include "helpers.h"

namespace keel {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("output: a file appears whole or not at all") {
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

TEST_CASE("output: two writers of one file have a temporary one each, whatever it is called") {
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

TEST_CASE("output: of several files all appear, or none") {
  const TemporaryFolder folder;
  folder.file("a.txt", "old");
  const std::string large(1 << 20, 'x');
  const auto write = [&](const std::string& last) {
    write_files({{folder / "a.txt", "new"}, {folder / "b.txt", last}});
  };
  {
    const FullDisk full;
    CHECK_THROWS_AS(write(large), Error);
  }
  CHECK(content_of(folder / "a.txt") == "old");
  CHECK(folder.names() == Names{"a.txt"});
  write(large);
  CHECK(content_of(folder / "a.txt") == "new");
  CHECK(content_of(folder / "b.txt") == large);
}

TEST_CASE("output: a link is followed, and permissions stay") {
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
  CHECK(message_of<Error>([&] { check_writable(folder / "round"); }) ==
        "output: got '" + folder / "round" + "', whose links lead nowhere");
  fs::create_symlink("/dev/stdout", folder / "stdout");
  for (const std::string& path : {std::string("/dev/stdout"), folder / "stdout"})
    CHECK(message_of<Error>([&] { check_writable(path); }) ==
          "output: got '" + path + "', wanted the path of a file");
}

TEST_CASE("output: one file by two names, which does not exist yet, is one file") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const fs::path here = fs::current_path();
  fs::current_path(folder.str());
  for (const std::string& other :
       {std::string("./m.st"), folder / "m.st", std::string("x/../m.st"), std::string("m.st")}) {
    CAPTURE(other);
    CHECK(message_of<Error>([&] {
            check_apart({"m.st", other}, {});
          }) == "output: got '" + other + "' for two files, wanted a name for each");
    CHECK_THROWS_AS(check_apart({other}, {"m.st"}), Error);
  }
  CHECK_NOTHROW(check_apart({"m.st", "x/m.st", "./n.st", ""}, {"", folder / "r.csv"}));
  fs::current_path(here);
}

TEST_CASE("output: a full disk leaves the old file and nothing else") {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  const std::string message = [&] {
    const FullDisk full;
    return message_of<Error>([&] { write_file(folder / "a.txt", std::string(5000, 'x')); });
  }();
  CHECK(message == "output: cannot write '" + folder / "a.txt" + "': File too large");
  CHECK(content_of(folder / "a.txt") == "old");
  CHECK(folder.names() == Names{"a.txt"});
}

TEST_CASE("output: what cannot be written to is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "x");
  CHECK(message_of<Error>([&] { check_writable(folder.str()); }) ==
        "output: got '" + folder.str() + "', wanted the path of a file");
  CHECK(message_of<Error>([&] { check_writable("/dev/null"); }) ==
        "output: got '/dev/null', wanted the path of a file");
  CHECK(message_of<Error>([&] {
          check_writable(file + "/below.csv");
        }).starts_with("output: got folder '" + file + "', which cannot be made: "));
  CHECK(message_of<Error>([&] { OutputFolder{file}; }) ==
        "output: got '" + file + "', wanted a folder");
  CHECK(message_of<Error>([] { OutputFolder{"/proc/keel"}; }).starts_with("output: "));
  check_writable(folder / "fine.csv");
  CHECK(folder.names() == Names{"file"});
}

TEST_CASE("output: folders made for what was not written are gone again") {
  const TemporaryFolder folder;
  OutputFolder(folder / "a/b");
  check_writable(folder / "c/../d/e.csv");
  CHECK(folder.names().empty());
  {
    const OutputFile never(folder / "a/b/never");
    write_file(folder / "a/other", "x");
  }
  CHECK(folder.names() == Names{"a"});
  CHECK_FALSE(std::filesystem::exists(folder / "a/b"));
  std::filesystem::create_directory(folder / "empty");
  OutputFolder(folder / "empty");
  CHECK(std::filesystem::exists(folder / "empty"));  // was there before
}

TEST_CASE("output: folders that come and go under many writers") {
  const TemporaryFolder folder;
  std::atomic<int> failures{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 200; ++i) try {
          check_writable(folder / fmt::format("a/b{}/c{}", i % 2, writer));
        } catch (const Error&) {
          ++failures;
        }
    });
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == 0);
}

TEST_CASE("output: numbers are as short as they can be, and CSV fields quoted where they must be") {
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(1.0 / 3) == "0.3333333333333333");
  CHECK(shortest(25.0) == "25");
  CHECK(shortest(0.1f) == "0.1");
  CHECK(shortest(-1e-300) == "-1e-300");
  CHECK(shortest(std::nan("")) == "nan");
  Csv csv({"a", "b, c", "d"});
  csv.add("x").add(0.5).add(std::int64_t{3}).end_row();
  csv.add("say \"hi\"").add("").add("two\nlines").end_row();
  CHECK(csv.text() == "a,\"b, c\",d\nx,0.5,3\n\"say \"\"hi\"\"\",,\"two\nlines\"\n");
  csv.add("x");
  CHECK_THROWS_WITH_AS(csv.end_row(), "csv: got 1 fields in a row, wanted 3", Error);
}

}  // namespace
}  // namespace keel
