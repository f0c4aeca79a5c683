// What bounds are widened by for having been computed in double.
#pragma once

namespace keel {

/// Rounding of double, by all that is summed: ten million of it.
inline constexpr double kMargin = 1e-9;

}  // namespace keel
