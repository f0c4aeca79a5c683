// The units right behind a norm, and how far each can go.
#pragma once

#include "interval.h"
#include "tail_dual.h"

namespace keel {

/// Of every unit of `map` over the set, exactly but for its cone, and widened by kMargin.
std::vector<Interval> linear_intervals(const Affine& map, const NormSet& set);

/// The first activation's units: origins, scales, ends and centres.
Units first_units(const Tail& tail, const UnitRows& rows, const std::vector<Interval>& intervals);

/// Half a typical deviation to either side of the middle: about where the values' mean is.
std::vector<double> centres(const Units& units, double spread);

void set_ends(Units& units, const std::vector<Interval>& intervals);

}  // namespace keel
