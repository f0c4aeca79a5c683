// The rows of --data that certify --mode trained judges a net by, and the units it is in.
#pragma once

#include "certify_trained.h"
#include "standardiser.h"
#include "trained_net.h"

namespace keel {

/// The rows that the net was trained on; without --data one row of zeros, and units of one.
struct TrainingRows {
  /// Throws DataError where a table cannot be read, and ShapeError where it is none of the net's.
  TrainingRows(const TrainedChoice& choice, const TrainedNet& trained, const Context& context);
  bool given;
  Examples examples, held_out{};  ///< the latter as the file says, where it says units, too
};

/// Those of the rows or, without them, of the file that keel wrote: then the row becomes its mean,
/// where the search begins.
Standardiser units_of(TrainingRows& rows, const TrainedNet& trained, const TrainedChoice& choice);

/// Of --ranges, each feature's in the net's units: by the names that the weights have of them, else
/// as the columns of --data, by name or place, with or without the target, else in their order.
/// Throws DataError and ShapeError as TrainingRows does.
std::vector<Interval> ranges_of(const TrainedChoice& choice, const TrainedNet& trained,
                                const Standardiser& units, const Context& context);

/// |x| of their farthest corner, and above 0.
double farthest_of(const std::vector<Interval>& ranges);

/// For summary.json, in the table's own units.
Json ranges_json(const TrainedChoice& choice, const std::vector<Interval>& ranges,
                 const Standardiser& units);

/// The largest |x| of x [n, d]; 0 of no rows.
double longest_row(const Tensor& x);

}  // namespace keel
