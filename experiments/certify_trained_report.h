// What keel certify --mode trained says of a net of a SPEC.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "../ntk/net_bound.h"
#include "certify_trained.h"
#include "standardiser.h"

namespace keel {

struct TrainedFindings {
  double r2 = std::numeric_limits<double>::quiet_NaN();
  double farthest_row = std::numeric_limits<double>::quiet_NaN();  // |x|, as the search has it
  std::vector<Interval> ranges{};                                  // of x, as the search has it
  NetBound bound;
  double bound_seconds = 0;
  Attack attack;
  Found share;  // of an interval, by a search of its own: |f| is largest at one end of one
  double bound_or_infinity() const {
    return bound.bounded ? bound.largest() : std::numeric_limits<double>::infinity();
  }
};

/// Ends in y's own units, rounded outward.
std::string interval_text(const Interval& interval, const Standardiser& units);

/// The hull of all outputs' intervals.
Interval of_all(const std::vector<Interval>& outputs);

/// For summary.json, in y's own units.
Json findings_json(const TrainedFindings& found, const TrainedChoice& choice, const Spec& spec,
                   const Standardiser& units);

/// A table for people, and lines that say how the bound came about.
std::string findings_text(const TrainedFindings& found, const TrainedChoice& choice,
                          const Spec& spec, const Standardiser& units);

}  // namespace keel
