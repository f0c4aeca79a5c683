#include "../../experiments/table.h"

#include <chrono>

#include "helpers.h"

namespace keel {
namespace {

using Values = std::vector<double>;

std::string refusal(const std::string& text, std::int64_t min_rows = 1) {
  return message_of<DataError>([&] { parse_table(text, "d.csv", min_rows); });
}

TEST_CASE("table: commas, semicolons and blanks, with and without a header") {
  for (const char* text :
       {"1,2\n3,4\n", "1;2\n3;4", "1 2\n3 4\n", "  1 \t 2\n3\t4\n\n \n", "1, 2\r\n3 ,4\r\n\r\n",
        "\xEF\xBB\xBF"
        "1,2\n3,4\n",
        "\"1\",2\n3,\"4\"", "+1,2e0\n3.0,0.4e1"}) {
    CAPTURE(text);
    const Table table = parse_table(text, "d.csv");
    CHECK(table.rows == 2);
    CHECK(table.cols == 2);
    CHECK(table.names.empty());
    CHECK(table.values == Values{1, 2, 3, 4});
  }
  const Table table = parse_table("\"a, b\",\"say \"\"hi\"\"\",\n1,2,3\n", "d.csv");
  CHECK(table.names == std::vector<std::string>{"a, b", "say \"hi\"", ""});
  CHECK(table.values == Values{1, 2, 3});
  CHECK(parse_table("\"x y\" z\n1 2\n", "d").names == std::vector<std::string>{"x y", "z"});
  CHECK(parse_table("x\n1\n2", "d").values == Values{1, 2});
}

TEST_CASE("table: one column, whatever the others hold") {
  const std::string text = "date,v,\"a,b\"\n2020-01-02,5,\n2020-01-03,nan, x\n2020-01-06,7,\n";
  const auto column = [](const std::string& of, const std::string& which) {
    return parse_column(of, "d.csv", which);
  };
  const auto refused = [&](const std::string& of, const std::string& which) {
    return message_of<DataError>([&] { column(of, which); });
  };
  CHECK(column("date,v\n2020-01-02,5\n2020-01-03,6\n", "v") == Values{5, 6});
  CHECK(column("date;v\n2020-01-02;5\n;6\n", "-1") == Values{5, 6});
  CHECK(column("2020-01-02 5\n2020-01-03 6", "1") == Values{5, 6});
  CHECK(column("1,2\n3,4", "0") == Values{1, 3});
  // Of the column itself nothing is let pass, nor are rows of other lengths.
  CHECK(refused(text, "v") == "d.csv: line 3, column 2 (v): got 'nan', wanted a finite number");
  CHECK(refused(text, "date") ==
        "d.csv: line 2, column 1 (date): got '2020-01-02', wanted a number");
  CHECK(refused("date,v\n2020-01-02,5,6\n", "v") ==
        "d.csv: line 2: got 3 fields, wanted 2 as on line 1, set apart by ','");
  CHECK(refused("date,v\n", "v") == "d.csv: got 0 rows of numbers, wanted at least 1");
  CHECK(refused(text, "w") == "d.csv: line 1: got column 'w', wanted one of: 0 date, 1 v, 2 a,b");
}

TEST_CASE("table: tabs set fields apart where the first lines say so, blanks else") {
  const auto names = [](const std::string& text) { return parse_table(text, "d.csv").names; };
  using Names = std::vector<std::string>;
  const auto dated = [](const Table&) { return std::vector<std::int64_t>{0}; };
  // What is left out may hold blanks, or nothing.
  const Table people = parse_table("name\tx\ty\nJohn Smith\t1\t2\n\t3\t4\n", "d.csv", 1, dated);
  CHECK(people.names == Names{"name", "x", "y"});
  CHECK(people.values == Values{0, 1, 2, 0, 3, 4});
  CHECK(parse_table("2020-01-01 00:00\t1\n2020-01-01 01:00\t2\n", "d.csv", 1, dated).values ==
        Values{0, 1, 0, 2});
  // Numbers that tabs and blanks line up, or a tab at the end of some lines.
  CHECK(parse_table("1 2\t3\n4\t5 6\n", "d.csv").cols == 3);
  CHECK(parse_table("1\t2\n3\t\t4\n", "d.csv").values == Values{1, 2, 3, 4});
  CHECK(parse_table("1\t2\n3\t4\t\n", "d.csv").values == Values{1, 2, 3, 4});
  CHECK(names("a\tb\n1\t2\n") == Names{"a", "b"});
  // A semicolon within a name is none between fields.
  CHECK(names("Price (EUR; net),b\n1,2\n") == Names{"Price (EUR; net)", "b"});
  CHECK(names("a,b;c\n1;2\n") == Names{"a,b", "c"});
}

TEST_CASE("table: a header is what is quoted, where the rows are not, and Latin-1 becomes UTF-8") {
  const Table years = parse_table("\"2019\",\"2020\"\n1,2\n3,4\n", "d.csv");
  CHECK(years.names == std::vector<std::string>{"2019", "2020"});
  CHECK(years.values == Values{1, 2, 3, 4});
  CHECK(parse_table("\"1\",\"2\"\n\"3\",\"4\"\n", "d.csv").rows == 2);
  CHECK(parse_table("\"1\",2\n3,4\n", "d.csv").rows == 2);
  CHECK(parse_table("\"1\",\"2\"\n", "d.csv").rows == 1);
  for (const char* name : {"l\xE9", "l\xC3\xA9"})
    CHECK(parse_table(fmt::format("{},y\n1,2\n", name), "d.csv").names[0] == "l\xC3\xA9");
  // No UTF-8: cut short, too long a form, a surrogate, beyond the last character.
  for (const char* name :
       {"a\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xFF"})
    CHECK(nlohmann::json(parse_table(fmt::format("{},y\n1,2\n", name), "d.csv").names[0])
              .dump()
              .size() > 2);
  for (const char* name : {"\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF"})
    CHECK(parse_table(fmt::format("{},y\n1,2\n", name), "d.csv").names[0] == name);
}

TEST_CASE("table: names of several words, set apart by tabs") {
  const Table table = parse_table("Cement (kg)\tWater\tAge in days\n1\t2 \t3\n", "d.csv");
  CHECK(table.names == std::vector<std::string>{"Cement (kg)", "Water", "Age in days"});
  CHECK(table.values == Values{1, 2, 3});
  CHECK(refusal("a b\tc\td\n1\t\t3\n") ==
        "d.csv: line 2, column 2 (c): got nothing, wanted a number");
  CHECK(refusal("a b\tc\n1\t\n3\t4\n") ==
        "d.csv: line 2, column 2 (c): got nothing, wanted a number");
  // Tabs and blanks that only set columns apart.
  CHECK(parse_table("1\t\t2\n3 \t4\n", "d").values == Values{1, 2, 3, 4});
  CHECK(parse_table("a \t b\n1\t2\n", "d").names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("table: a first line that is neither names nor data") {
  CHECK(refusal("0,1,2\n5,6,7\n") ==
        "d.csv: line 1: got the columns' numbers, 0 to 2, wanted their names or data");
  CHECK(refusal("1 2 3 4 5\n5 6 7 8 9\n") ==
        "d.csv: line 1: got the columns' numbers, 1 to 5, wanted their names or data");
  CHECK(parse_table("1 2 3 4\n5 6 7 8\n", "d").rows == 2);
  CHECK(parse_table("1 2 3 4 6\n5 6 7 8 9\n", "d").rows == 2);
  CHECK(parse_table("0 1 2\n", "d").values == Values{0, 1, 2});
  CHECK(parse_table("0,1\n5,6\n", "d").values == Values{0, 1, 5, 6});
  CHECK(refusal("NA,NA\n5,6\n") ==
        "d.csv: line 1: got 'NA' first and no name, wanted names or numbers");
  CHECK(refusal(",,\n5,6,7\n") ==
        "d.csv: line 1: got nothing but separators, wanted names or numbers");
}

TEST_CASE("table: numbers keep every digit, and the smallest are not refused") {
  const Table table = parse_table("0.1,1.7976931348623157e308,5e-324,1e-400,-0", "d");
  CHECK(table.values == Values{0.1, 1.7976931348623157e308, 5e-324, 0, 0});
}

TEST_CASE("table: what cannot be used is refused by file, line and column") {
  CHECK(refusal("a,b\n1,2\n3,x\n") == "d.csv: line 3, column 2 (b): got 'x', wanted a number");
  CHECK(refusal("1,2\n3,\n") == "d.csv: line 2, column 2: got nothing, wanted a number");
  CHECK(refusal("a,b\n,2\n") == "d.csv: line 2, column 1 (a): got nothing, wanted a number");
  CHECK(refusal("1,2\n3,inf\n") == "d.csv: line 2, column 2: got 'inf', wanted a finite number");
  CHECK(refusal("1 2\n-nan 4") == "d.csv: line 2, column 1: got '-nan', wanted a finite number");
  CHECK(refusal("1,2\n1e999,3\n") ==
        "d.csv: line 2, column 1: got '1e999', wanted a finite number");
  CHECK(refusal("1;2\n1,5;3\n") == "d.csv: line 2, column 1: got '1,5', wanted a number");
  CHECK(refusal("1,0x10\n") ==
        "d.csv: line 1, column 2: got '0x10', wanted a number (a header has none)");
  CHECK(refusal("1,2\n3,4,5\n") ==
        "d.csv: line 2: got 3 fields, wanted 2 as on line 1, set apart by ','");
  CHECK(refusal("a b\n1\n") ==
        "d.csv: line 2: got 1 field, wanted 2 as on line 1, set apart by blanks");
  CHECK(refusal("size (m);y\n1,2\n") ==
        "d.csv: line 2: got 1 field, wanted 2 as on line 1, set apart by ';'");
  CHECK(refusal("a b\tc\n1\n") ==
        "d.csv: line 2: got 1 field, wanted 2 as on line 1, set apart by tabs");
  CHECK(refusal("a,b\r1,2\r") ==
        "d.csv: got lines that end with a carriage return alone, wanted line feeds");
  CHECK(refusal("1\n\n2\n") == "d.csv: line 2: got a blank line, wanted 1 field as on line 1");
  CHECK(refusal("1,\"2\n3,4") == "d.csv: line 1, column 2: the quote is not closed on this line");
  CHECK(refusal("\"1\"x,2") == "d.csv: line 1, column 1: got 'x,2' after a closing quote");
  CHECK(refusal("") == "d.csv: got an empty file, wanted a table");
  CHECK(refusal(" \r\n\n") == "d.csv: got an empty file, wanted a table");
  CHECK(refusal("a,b\n") == "d.csv: got 0 rows of numbers, wanted at least 1");
  CHECK(refusal("a\n1\n", 2) == "d.csv: got 1 row of numbers, wanted at least 2");
  CHECK(refusal(std::string("1,2\0", 4)) ==
        "d.csv: got binary data, wanted text: CSV or columns set apart by blanks");
  CHECK(refusal("1\n" + std::string(50, '\x01')).find(std::string(40, '?') + "...") !=
        std::string::npos);
}

TEST_CASE("table: an error carries its place") {
  try {
    parse_table("1,2\n3,x\n", "d.csv");
    FAIL("nothing thrown");
  } catch (const DataError& error) {
    CHECK(error.file() == "d.csv");
    CHECK(error.line() == 2);
    CHECK(error.column() == 2);
  }
}

TEST_CASE("table: files") {
  const TemporaryFolder folder;
  CHECK(read_table(folder.file("d.csv", "x,y\n1,2\n")).values == Values{1, 2});
  CHECK(message_of<DataError>([&] { read_table(folder / "no.csv"); }) ==
        folder / "no.csv" + ": there is no such file");
  CHECK(message_of<DataError>([&] { read_table(folder.str()); }) ==
        folder.str() + ": got a folder, wanted a file");
  // It has no end.
  CHECK(message_of<DataError>([] { read_table("/dev/zero"); }) ==
        "/dev/zero: got a device, wanted a file");
}

TEST_CASE("table: a wide header over many lines asks for no more memory than the text") {
  std::string text = "1";
  for (int i = 0; i < 300000; ++i) text += ",1";
  CHECK(refusal(text + std::string(300000, '\n') + "1") ==
        "d.csv: line 2: got a blank line, wanted 300001 fields as on line 1");
}

TEST_CASE("table: columns by name and by number") {
  const Table named = parse_table("a,b,b,7th\n1,2,3,4\n", "d.csv");
  CHECK(find_column(named, "a") == 0);
  CHECK(find_column(named, "7th") == 3);
  CHECK(find_column(named, "1") == 1);
  CHECK(find_column(named, "-1") == 3);
  const auto refused = [](const Table& table, const char* which) {
    return message_of<DataError>([&] { find_column(table, which); });
  };
  CHECK(refused(named, "price") ==
        "d.csv: line 1: got column 'price', wanted one of: 0 a, 1 b, 2 b, 3 7th");
  CHECK(refused(named, "4") ==
        "d.csv: line 1: got column '4', wanted one of: 0 a, 1 b, 2 b, 3 7th");
  CHECK(refused(named, "b") ==
        "d.csv: line 1: more than one column is called 'b': give its number, from 0");
  const Table bare = parse_table("1 2 3", "d.txt");
  CHECK(find_column(bare, "-3") == 0);
  CHECK(refused(bare, "-4") == "d.txt: got column '-4', wanted 0 to 2 (there is no header)");
  CHECK(refused(bare, "a\n") == "d.txt: got column 'a?', wanted 0 to 2 (there is no header)");
  CHECK(refused(bare, "1.5") == "d.txt: got column '1.5', wanted 0 to 2 (there is no header)");
}

TEST_CASE("table: 45,730 rows of 10 columns are read in a moment") {
  std::string text;
  for (int i = 0; i < 45730 * 10; ++i)
    text += fmt::format("{:.5f}{}", 1e4 / (i + 1), i % 10 == 9 ? "\n" : " ");
  const auto start = std::chrono::steady_clock::now();
  const Table table = parse_table(text, "d");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(table.rows == 45730);
  CHECK(table.cols == 10);
  CHECK(seconds.count() < 2);
  MESSAGE("parsed in " << seconds.count() << " s");
}

}  // namespace
}  // namespace keel
