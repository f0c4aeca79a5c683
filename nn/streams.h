// Which random stream of a seed is used for what, so that no two uses share their draws.
#pragma once

#include <cstdint>

namespace keel::streams {

/// Initial values of parameter p, in layout order.
constexpr std::uint64_t parameter(std::uint64_t p) { return p; }

/// Which rows of a table are for testing.
constexpr std::uint64_t split() { return std::uint64_t{1} << 61; }

/// Inputs drawn for a net or a kernel to be looked at.
constexpr std::uint64_t inputs() { return split() + 1; }

/// Directions that a search for the largest prediction tries.
constexpr std::uint64_t directions() { return split() + 2; }

/// Sequences that step `step` of a training draws.
constexpr std::uint64_t sequences(std::uint64_t step) { return (std::uint64_t{1} << 60) + step; }

/// Order of the rows in an epoch.
constexpr std::uint64_t shuffle(std::uint64_t epoch) { return (std::uint64_t{1} << 62) + epoch; }

}  // namespace keel::streams
