#include "protein.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "../core/random.h"
#include "../nn/streams.h"

namespace keel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTarget = "RMSD";
constexpr std::int64_t kColumns = 10, kArchiveRows = 45730;
constexpr double kTrainingShare = 0.9;

// The file itself, or that of a folder.
std::string find_file(const std::string& path) {
  std::error_code ignored;
  std::vector<fs::path> places = {path};
  if (fs::is_directory(path, ignored))
    places = {fs::path(path) / "CASP.csv", fs::path(path) / "CASP.txt"};
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, ignored)) return place.string();
  throw DataError(path,
                  "no such file: wanted CASP.csv of the UCI data set \"Physicochemical Properties "
                  "of Protein Tertiary Structure\", DOI 10.24432/C5QW3H (or its whitespace form, "
                  "CASP.txt)");
}

// Which column is the target, and how the file's form reads in a message.
std::pair<std::int64_t, std::string> form_of(const Table& table) {
  if (table.names.empty()) return {kColumns - 1, "no header, RMSD last"};
  const auto found = std::find(table.names.begin(), table.names.end(), kTarget);
  if (found == table.names.end())
    throw DataError(table.file, "got a header without RMSD, wanted RMSD and F1 to F9", 1);
  const std::int64_t at = found - table.names.begin();
  return {at, at == 0              ? "header, RMSD first"
              : at == kColumns - 1 ? "header, RMSD last"
                                   : fmt::format("header, RMSD in column {}", at + 1)};
}

// Columns F1 to F9: by these names, where a header has them all, else all but the target.
std::vector<std::int64_t> features_of(const Table& table, std::int64_t target) {
  std::vector<std::int64_t> named, others;
  for (std::int64_t f = 1; f < kColumns; ++f) {
    const auto found = std::find(table.names.begin(), table.names.end(), fmt::format("F{}", f));
    if (found != table.names.end()) named.push_back(found - table.names.begin());
  }
  for (std::int64_t col = 0; col < table.cols; ++col)
    if (col != target) others.push_back(col);
  return std::ssize(named) == kColumns - 1 ? named : others;
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

}  // namespace

Protein read_protein(const std::string& path) {
  const Table table = read_table(find_file(path));
  if (table.cols != kColumns)
    throw DataError(table.file,
                    fmt::format("got {} columns, wanted 10: RMSD and F1 to F9", table.cols));
  const auto [target, form] = form_of(table);
  Protein protein;
  protein.rows = gathered(table, features_of(table, target), target);
  for (std::size_t f = 0; f < protein.rows.names.size(); ++f)
    protein.rows.names[f] = fmt::format("F{}", f + 1);
  protein.found = fmt::format("{}: {} rows x {} columns ({})", table.file, with_commas(table.rows),
                              table.cols, form);
  if (table.rows != kArchiveRows)
    protein.found += fmt::format("; the archive's file has {} rows", with_commas(kArchiveRows));
  return protein;
}

ProteinSplit split_protein(const Protein& protein, std::uint64_t seed) {
  ProteinSplit split;
  std::vector<std::int64_t> inside;
  for (std::int64_t row = 0; row < protein.rows.rows; ++row)
    (protein.area(row) < kProteinArea ? inside : split.ood).push_back(row);
  const auto count = static_cast<std::int64_t>(inside.size());
  const auto training = std::llround(kTrainingShare * static_cast<double>(count));
  if (training < 2 || count - training < 2 || split.ood.size() < 2)
    throw DataError("protein",
                    fmt::format("got {} rows with F1 (the first feature) below 20000 and {} "
                                "others, wanted at least 15 and 2",
                                count, split.ood.size()));
  const std::vector<std::int64_t> order = permutation(count, {seed, streams::split()});
  for (std::int64_t i = 0; i < count; ++i)
    (i < training ? split.train : split.id).push_back(inside[order[i]]);
  std::sort(split.id.begin(), split.id.end());
  return split;
}

}  // namespace keel
