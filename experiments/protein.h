// The UCI data set "Physicochemical Properties of Protein Tertiary Structure"
// (DOI 10.24432/C5QW3H): 45,730 rows of nine features, F1 to F9, and a target, RMSD.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples.h"

namespace keel {

inline constexpr double kProteinArea = 20000;  ///< of F1: rows below are in distribution

struct Protein {
  Examples rows;      ///< features F1 to F9, target RMSD
  std::string found;  ///< one line for people: file, form, rows and columns
  double area(std::int64_t row) const { return rows.x[row * rows.features]; }  ///< F1
};

/// Reads the archive's CASP.csv (header, RMSD first) or its whitespace form CASP.txt (no header,
/// RMSD last). `path` is a file, or a folder that holds one of the two. Throws DataError: no such
/// file, which names the file expected and where it comes from; other than ten columns.
Protein read_protein(const std::string& path);

/// Numbers of rows, from 0.
struct ProteinSplit {
  std::vector<std::int64_t> train, id, ood;
};

/// Ziomek et al. 2025, section 4.2: rows with F1 >= 20,000 are out of distribution; of the others
/// `seed` draws 90% for training, in random order, and the rest, in the file's order, are in
/// distribution. Throws DataError where one of the three would be too small to use.
ProteinSplit split_protein(const Protein& protein, std::uint64_t seed);

}  // namespace keel
