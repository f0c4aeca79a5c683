// The largest value of one unit's share of a bound: an activation, plus a quadratic, on an
// interval.
#pragma once

#include "activation.h"

namespace keel {

/// w p + theta p^2 - cross y p - sigma y - kappa y^2 with p = phi(z) - centre and
/// z = origin + scale y, over low <= y <= high. scale >= 0.
struct ScalarProblem {
  Activation phi{};
  double w = 0, theta = 0, cross = 0, centre = 0, sigma = 0, kappa = 0;
  double origin = 0, scale = 1, low = -1, high = 1;
};

struct ScalarMaximum {
  double value = 0;  ///< no smaller than the maximum
  double y = 0;      ///< where (nearly) so much is reached
};

double value_at(const ScalarProblem& problem, double y);

/// relu, leakyrelu: exact, of two parabolas. The others: branch and bound to within `tolerance`;
/// with the ends of a cell of length h, a function is at most the larger one plus h^2/8 times a
/// bound on minus its second derivative.
ScalarMaximum scalar_maximum(const ScalarProblem& problem, double tolerance);

}  // namespace keel
