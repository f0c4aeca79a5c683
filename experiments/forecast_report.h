// What `keel forecast` says of its run: files, numbers, and a text for people.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "forecast_run.h"
#include "train_report.h"

namespace keel {

/// Columns row (from 0), kind, true, prediction, and of an ensemble std and each seed's. Kinds:
/// one_step and rollout of the rows held out, forecast of what lies behind the last row.
std::string forecast_csv(const Forecast& forecast, const Series& series);

/// Columns row and value, of the whole series.
std::string series_csv(const Series& series);

/// How well the held-out rows were predicted, in summary.json's numbers; and for people, a row a
/// line. Neither where none were held out. With a note where nets of `given` seem to be of another
/// series.
TextRows add_fits(Json& numbers, const Forecast& forecast, const Series& series, bool given,
                  const Context& context);

/// The same of what was proved, and of the largest prediction that was found.
TextRows add_proof(Json& numbers, const Forecast& forecast, const Series& series);

}  // namespace keel
