// Sizes that several sections of the report have in common.
#pragma once

#include <cstdint>

namespace keel::bench {

inline constexpr std::int64_t kFeatures = 9;  ///< columns of the protein data, kernels and solves
inline constexpr std::int64_t kPoints = 100;  ///< rows of Figure 1's data sets
inline constexpr std::int64_t kWidth = 128;   ///< hidden units of the nets of both

}  // namespace keel::bench
