#include <cstring>

#include "../../core/memory.h"
#include "../../experiments/npy.h"
#include "../../experiments/standardiser.h"
#include "../mutated.h"
#include "helpers.h"

namespace keel {
namespace {

using test::Mutator;
using test::Verdicts;

// Every number of a table by strtod, whatever separates them.
std::vector<double> numbers_of(std::string text, bool header) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (header) text.erase(0, text.find('\n'));
  std::ranges::replace_if(
      text, [](char c) { return std::strchr(",;\" \t\r\n", c) != nullptr; }, ' ');
  std::vector<double> numbers;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    char* end = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0') FAIL_CHECK("'", word, "' was taken for a number");
  }
  return numbers;
}

TEST_CASE("mutated tables: refused, or every number as strtod reads it") {
  const std::vector<std::string> sound = {
      "a,b\n1,2\n3,4\n5,6\n", "1 2\n3\t4\r\n-5e3 0.25\r\n", "\"x\";\"y, z\"\n1;2.5\n\"-3\";4e-7\n",
      "\xEF\xBB\xBF+1,2,3\n5e-324,1.7976931348623157e308,0\n", "x\n0\n5e-324\n\n"};
  const Mutator mutate(1, {"inf", "nan",  "1e999", "1e-999", "-",
                           "+",   "e",    "0x1",   ".",      ",",
                           ";",   " ",    "\t",    "\"",     "\"\"",
                           "\n",  "\r\n", "\v",    "x",      "12345678901234567890123"});
  const Verdicts verdicts = read_mutated(mutate, sound, 6000, [](const std::string& text) {
    const Table table = parse_table(text, "d.csv");
    CHECK(table.values == numbers_of(text, !table.names.empty()));
    CHECK(table.rows * table.cols == static_cast<std::int64_t>(table.values.size()));
    CHECK(table.values.capacity() <= text.size() + 16);
    const Examples examples = training_examples(table, "-1");
    const Standardiser standardiser(Standardise::x, examples);
    for (double value : standardiser.x(examples)) CHECK(!std::isnan(value));
  });
  CHECK(verdicts.accepted > 500);
  CHECK(verdicts.refused > 500);
}

TEST_CASE("mutated names of columns: a column that is there, or one line") {
  const Table named = parse_table("a,b,b,7th,c\n1,2,3,4,5\n", "d.csv");
  const Table bare = parse_table("1 2 3", "d.txt");
  const Mutator mutate(2, {"a", "b", "-", "0", "99999999999999999999", "\n", "\x1b[2J", "{}"});
  const Verdicts verdicts =
      read_mutated(mutate, {"a", "7th", "-1", "2", "0"}, 2000, [&](const std::string& which) {
        const Table& table = which.size() % 2 == 0 ? named : bare;
        const std::int64_t at = find_column(table, which);
        CHECK((at >= 0 && at < table.cols));
      });
  CHECK(verdicts.accepted > 100);
  CHECK(verdicts.refused > 100);
}

std::string npy_of(const Tensor& tensor) {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy", tensor);
  return content_of(folder / "a.npy");
}

TEST_CASE("mutated .npy: refused, or the array that the header's words say") {
  const Tensor six = Tensor::from<double>({1, 2, 3, 4, 5, 6.5}, {2, 3});
  const std::vector<std::string> sound = {
      npy_of(six), npy_of(six.to(DType::f32).reshape({6})), npy_of(six.reshape({1, 3, 2, 1})),
      npy_of(Tensor::from<double>({1}, {})), npy_of(Tensor::zeros({0, 4}))};
  const Mutator mutate(3, {"'descr'",
                           "'shape'",
                           "'fortran_order'",
                           "'<f4'",
                           "'<f8'",
                           "('<f8', '<f4')",
                           "[",
                           "]",
                           "(",
                           ")",
                           "{",
                           "}",
                           ",",
                           ":",
                           "'",
                           "True",
                           "False",
                           "-1",
                           "06",
                           "6",
                           "2",
                           "9",
                           " ",
                           "\n",
                           "4611686018427387904"});
  reset_peak(Device::cpu());
  const std::size_t before = memory_stats(Device::cpu()).peak_in_use;
  const Verdicts verdicts = read_mutated(mutate, sound, 8000, [](const std::string& bytes) {
    const Tensor tensor = parse_npy(bytes, "a.npy");
    const std::size_t start = bytes.size() - tensor.bytes();
    std::string header = bytes.substr(0, start);
    std::erase_if(header, [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
    std::string shape = tensor.shape().str();
    std::erase(shape, ' ');
    shape = "'shape':(" + shape.substr(1, shape.size() - 2);
    CHECK(header.find(tensor.dtype() == DType::f32 ? "'descr':'<f4'" : "'descr':'<f8'") !=
          header.npos);
    const bool fortran = header.find("'fortran_order':True") != header.npos;
    CHECK((fortran || header.find("'fortran_order':False") != header.npos));
    CHECK((header.find(shape + ")") != header.npos || header.find(shape + ",)") != header.npos));
    dispatch(tensor.dtype(), [&](auto t) {
      if (fortran && tensor.rank() > 1) return;  // the same elements in another order
      CHECK(std::memcmp(tensor.data<decltype(t)>(), bytes.data() + start, tensor.bytes()) == 0);
    });
  });
  CHECK(verdicts.accepted > 300);
  CHECK(verdicts.refused > 1000);
  CHECK(memory_stats(Device::cpu()).peak_in_use <= before + (1 << 16));
}

// Whatever is typed, a command ends with 0, or with one line of its own and no file.
TEST_CASE("mutated arguments: done, or one line and nothing written") {
  const TemporaryFolder folder;
  const std::string data = folder.file("d.csv", "a,b,c\n1,2,1\n2,1,3\n4,0,2\n0,5,1\n");
  const std::string save = folder / "p.csv";
  const std::vector<std::string> sound = {"regress",
                                          "--net",
                                          "dense(4) layernorm relu dense(1)",
                                          "--data",
                                          data,
                                          "--target",
                                          "c",
                                          "--standardise",
                                          "x",
                                          "--ridge-relative",
                                          "1e-2",
                                          "--save",
                                          save,
                                          "--out",
                                          folder / "out",
                                          "--quiet",
                                          "--device",
                                          "cpu"};
  Mutator mutate(4, {"-", "1", "e999", "dense(", ")", " ", "\n", "=", "inf", "c", "0", "--help"});
  int done = 0, refused = 0;
  for (int i = 0; i < 250; ++i) {
    std::vector<std::string> arguments = sound;
    std::size_t which;
    do which = mutate.below(arguments.size());
    while (which == 12 || which == 14);  // files are written nowhere else
    if (i % 2 == 0) which = std::vector<std::size_t>{2, 6, 8, 10}[mutate.below(4)];
    arguments[which] = mutate(arguments[which]);
    CAPTURE(shown(arguments[which]));
    const Ran ran = run_keel(arguments);
    const bool written = std::filesystem::exists(save);
    std::filesystem::remove(save);
    if (ran.code == 0) {
      ++done;
      CHECK((written || ran.out.find("Usage") != ran.out.npos ||
             ran.out.find("OPTIONS") != ran.out.npos));
      continue;
    }
    ++refused;
    CHECK((ran.code == 1 || ran.code == 2));
    CHECK(!written);
    REQUIRE(ran.err.starts_with("keel: "));
    CHECK(test::is_one_line(ran.err.substr(0, ran.err.size() - 1)));
  }
  CHECK(done > 20);
  CHECK(refused > 50);
}

}  // namespace
}  // namespace keel
