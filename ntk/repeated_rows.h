// Rows of a matrix that are there more than once: what makes a kernel's matrix singular.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace keel {

/// (row, the first row that is equal to it), from 0, in order of row. x holds rows of `cols`
/// values; -0 equals 0. O(n d log n).
std::vector<std::pair<std::int64_t, std::int64_t>> repeated_rows(std::span<const double> x,
                                                                 std::int64_t cols);

}  // namespace keel
