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
  std::int64_t nets = 1;  // of which this is the mean
  double r2 = std::numeric_limits<double>::quiet_NaN();
  double held_out_r2 = std::numeric_limits<double>::quiet_NaN();
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

/// Of what the nets say in the mean: each output's interval is the mean of theirs, and its layer
/// the first's.
NetBound mean_of_bounds(const std::vector<TrainedFindings>& members);

/// The hull of all outputs' intervals.
Interval of_all(const std::vector<Interval>& outputs);

/// For summary.json, in y's own units.
Json findings_json(const TrainedFindings& found, const TrainedChoice& choice, const Spec& spec,
                   const Standardiser& units);

/// A table for people, and lines that say how the bound came about.
std::string findings_text(const TrainedFindings& found, const TrainedChoice& choice,
                          const Spec& spec, const Standardiser& units);

/// A table for people, a row each net and one of their mean.
std::string members_text(const std::vector<TrainedFindings>& members, const TrainedFindings& mean,
                         const Standardiser& units);

}  // namespace keel
