#include "../../experiments/protein.h"

#include <algorithm>
#include <set>

#include "helpers.h"

namespace keel {
namespace {

const char* const kHeader = "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\n";

// 20 rows, F1 from 1000 in steps of 1500, RMSD the row's number; both forms of one table.
std::string csv_form() {
  std::string text = kHeader;
  for (int row = 0; row < 20; ++row)
    text += fmt::format("{},{},2,0.3,{},5,6,7,8,9\n", row, 1000 + 1500 * row, row * row);
  return text;
}

std::string whitespace_form() {
  std::string text;
  for (int row = 0; row < 20; ++row)
    text += fmt::format("{} 2 0.3 {} 5 6 7 8 9 {}\n", 1000 + 1500 * row, row * row, row);
  return text;
}

// A table of the archive's size with nothing in it but areas.
Protein full_size() {
  Protein protein;
  protein.rows.rows = 45730;
  protein.rows.features = 1;
  for (std::int64_t row = 0; row < protein.rows.rows; ++row) {
    protein.rows.x.push_back(row % 40 == 7 && row < 1139 * 40 ? 20000 + row - 7 : 19999);
    protein.rows.y.push_back(0);
  }
  return protein;
}

TEST_CASE("protein: both forms are one table, read from a file or its folder") {
  const TemporaryFolder csv, text;
  const std::string csv_file = csv.file("CASP.csv", csv_form());
  const std::string text_file = text.file("CASP.txt", whitespace_form());
  const Protein first = read_protein(csv_file), last = read_protein(text_file);
  CHECK(first.rows.x == last.rows.x);
  CHECK(first.rows.y == last.rows.y);
  CHECK(first.rows.names == last.rows.names);
  CHECK(first.rows.names.front() == "F1");
  CHECK(first.rows.y[3] == 3);
  CHECK(first.area(3) == 5500);
  CHECK(first.found == csv_file +
                           ": 20 rows x 10 columns (header, RMSD first); the archive's file has "
                           "45,730 rows");
  CHECK(last.found == text_file +
                          ": 20 rows x 10 columns (no header, RMSD last); the archive's file has "
                          "45,730 rows");
  CHECK(read_protein(csv.str()).rows.y == first.rows.y);
  CHECK(read_protein(text.str()).rows.y == first.rows.y);
}

TEST_CASE("protein: a missing file, other columns, a header without the target") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& path) {
    return message_of<DataError>([&] { read_protein(path); });
  };
  for (const std::string& path : {folder.str(), folder / "no.csv"})
    CHECK(message(path) == path +
                               ": no such file: wanted CASP.csv of the UCI data set "
                               "\"Physicochemical Properties of Protein Tertiary Structure\", DOI "
                               "10.24432/C5QW3H (or its whitespace form, CASP.txt)");
  const std::string narrow = folder.file("narrow.csv", "1,2,3\n4,5,6\n");
  CHECK(message(narrow) == narrow + ": got 3 columns, wanted 10: RMSD and F1 to F9");
  const std::string other = folder.file("other.csv", "a,b,c,d,e,f,g,h,i,j\n1,2,3,4,5,6,7,8,9,10\n");
  CHECK(message(other) == other + ": got a header without RMSD, wanted RMSD and F1 to F9");
}

TEST_CASE("protein: the split's sizes on a table of the archive's size") {
  const Protein protein = full_size();
  const ProteinSplit split = split_protein(protein, 3);
  CHECK(split.train.size() == 40132);
  CHECK(split.id.size() == 4459);
  CHECK(split.ood.size() == 1139);
  std::set<std::int64_t> all(split.train.begin(), split.train.end());
  all.insert(split.id.begin(), split.id.end());
  all.insert(split.ood.begin(), split.ood.end());
  CHECK(all.size() == 45730);
  for (std::int64_t row : split.ood) CHECK(protein.area(row) >= kProteinArea);

  const ProteinSplit again = split_protein(protein, 3), other = split_protein(protein, 4);
  CHECK(again.train == split.train);
  CHECK(again.id == split.id);
  CHECK(other.train != split.train);
  CHECK(other.id != split.id);
  CHECK(other.ood == split.ood);
}

TEST_CASE("protein: a split too small to use is refused") {
  Protein protein = full_size();
  std::fill(protein.rows.x.begin(), protein.rows.x.end(), 100.0);
  CHECK(message_of<DataError>([&] { split_protein(protein, 0); }) ==
        "protein: got 45730 rows with F1 (the first feature) below 20000 and 0 others, wanted at "
        "least 15 and 2");
}

TEST_CASE("protein: features by their names, in whatever order a header has them") {
  const TemporaryFolder folder;
  const Protein plain = read_protein(folder.file("CASP.csv", csv_form()));
  const Table table = read_table(folder / "CASP.csv");
  std::string turned;
  for (std::int64_t row = -1; row < table.rows; ++row)
    for (std::int64_t col = table.cols - 1; col >= 0; --col)
      turned += (row < 0 ? table.names[static_cast<std::size_t>(col)]
                         : fmt::format("{}", table.at(row, col))) +
                (col > 0 ? "," : "\n");
  const Protein moved = read_protein(folder.file("turned.csv", turned));
  CHECK(moved.rows.x == plain.rows.x);
  CHECK(moved.rows.y == plain.rows.y);
  CHECK(moved.rows.names == plain.rows.names);
}

TEST_CASE("protein: rows are taken in the order asked for") {
  const TemporaryFolder folder;
  const Protein protein = read_protein(folder.file("CASP.csv", csv_form()));
  const Examples two = examples_at(protein.rows, std::vector<std::int64_t>{7, 2});
  CHECK(two.rows == 2);
  CHECK(two.y == std::vector<double>{7, 2});
  CHECK(two.x[0] == protein.area(7));
  CHECK(two.x[9] == protein.area(2));
}

}  // namespace
}  // namespace keel
