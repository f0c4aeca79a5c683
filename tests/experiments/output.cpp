#include "../../experiments/output.h"

#include <filesystem>

#include "../../core/error.h"
#include "../full_disk.h"
#include "helpers.h"

namespace keel {
namespace {

using Names = std::vector<std::string>;

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

TEST_CASE("output: one file by two names, which does not exist yet, is one file") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const struct Back {
    fs::path here = fs::current_path();
    ~Back() { fs::current_path(here); }
  } back;
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
}

TEST_CASE("output: what cannot be written to is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "x");
  CHECK(message_of<Error>([&] { check_writable(folder.str()); }) ==
        "output: got '" + folder.str() + "', wanted the path of a file");
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
  std::filesystem::create_directory(folder / "empty");
  OutputFolder(folder / "empty");
  CHECK(std::filesystem::exists(folder / "empty"));  // was there before
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
