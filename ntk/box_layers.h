// Forms of what goes into a step of a net, taken through it.
#pragma once

#include "box_forms.h"
#include "box_net.h"
#include "perspective.h"

namespace keel {

/// `rounded` gets what rounding of each output is measured by.
Forms through(const BoxMap& map, const Forms& given, std::vector<double>& rounded);

/// `t`: what the net's last input may be, for units that it scales. `planes` gets one a unit.
Forms through(const BoxUnits& units, const Forms& given, const Interval& t,
              std::vector<UnitPlanes>& planes);

/// Of what scaled unit j loses, how much t's side of a box costs: of z about 0 it is z's, but for
/// what is as wide as t.
double part_of_last(const Forms& given, std::size_t j, const Interval& t);

/// Of two forms of the same e; the last of `kept`, if it stays, is nobody's sum.
Forms sum_of(const Forms& kept, const Forms& added, bool last_stays);

}  // namespace keel
