// Lines above and below an activation on an interval.
#pragma once

#include "activation.h"

namespace keel {

/// phi(z) is slope z + middle, to within radius; below up_slope z + up, and above down_slope z +
/// down.
struct UnitLines {
  double slope = 0, middle = 0, radius = 0;
  double up_slope = 0, up = 0, down_slope = 0, down = 0;
};

/// Of low <= z <= high. One slope is that of the chord; of two lines that meet at 0, on whose
/// hollow side a line may be of either slope, the two tell which is nearer by more of the interval.
/// Widened by kMargin of what is summed.
UnitLines lines_of(const Activation& phi, const Interval& z);

}  // namespace keel
