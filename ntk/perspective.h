// Lines above and below an activation of z / t, t >= 0, and t times it, which is called its
// perspective: both up to where t is 0, and z / t infinitely far.
#pragma once

#include "box_units.h"

namespace keel {

/// Of two numbers z and t: slope z + last t + middle, to within radius, and below and above two
/// more such planes.
struct UnitPlanes {
  UnitLines of_z{};
  double last = 0, up_last = 0, down_last = 0;
  double radius_last = 0;  ///< of t: added to the radius
};

/// What z / t may be; t.low >= 0.
Interval quotient(const Interval& z, const Interval& t);

/// Of t phi(z / t), whose limit at t = 0 is what phi's two lines far out make of z; `u`: what z / t
/// may be, which of a phi that bounds its units has ends. A line of phi is a plane of it, and so is
/// one of those two lines, with what phi is beside them times t: the nearer is taken.
UnitPlanes planes_of_perspective(const Activation& phi, const Interval& z, const Interval& u,
                                 const Interval& t);
Interval range_of_perspective(const Activation& phi, const Interval& z, const Interval& u,
                              const Interval& t);

/// Of phi(z / t), of a tanh or a sigmoid. With s = 1 / t, and z0 and s0 in the middle of what they
/// may be, z s = s0 z + z0 (s - s0) + (z - z0)(s - s0), and s is between a chord and its parallel.
UnitPlanes planes_of_quotient(const Activation& phi, const Interval& z, const Interval& t);

}  // namespace keel
