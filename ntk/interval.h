// An interval of real numbers.
#pragma once

namespace keel {

struct Interval {
  double low = 0, high = 0;
};

}  // namespace keel
