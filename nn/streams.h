// Which random stream of a seed is used for what, so that no two uses share their draws.
#pragma once

#include <cstdint>

namespace keel::streams {

/// Initial values of parameter p, in layout order.
constexpr std::uint64_t parameter(std::uint64_t p) { return p; }

/// Order of the rows in an epoch.
constexpr std::uint64_t shuffle(std::uint64_t epoch) { return (std::uint64_t{1} << 62) + epoch; }

}  // namespace keel::streams
