// What a transformer's block with norms of its own adds to what passes it by.
#pragma once

#include "transformer_parts.h"

namespace keel {

/// The least and the largest value of something, and the sum of the sizes of all that makes it.
struct Range {
  Interval within{};
  double size = 0;
  Range& operator+=(const Range& other) {
    within = {within.low + other.within.low, within.high + other.within.high};
    size += other.size + kNothing;
    return *this;
  }
  Range& operator+=(const Most& fixed) {
    return *this += Range{{fixed.value, fixed.value}, fixed.size};
  }
};

/// Of d . what `block` adds, attention and ReLU layer, whatever it is given. It must have norms.
Range range_added(const TransformerParts::Block& block, std::size_t heads, const Direction& d);

}  // namespace keel
