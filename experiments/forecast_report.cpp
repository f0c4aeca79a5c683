#include "forecast_report.h"

#include <algorithm>
#include <iterator>

#include "output.h"
#include "sequence_report.h"

namespace keel {
namespace {

using OfMember = std::vector<double> ForecastMember::*;

MemberRows member_rows(const Forecast& forecast, OfMember which) {
  MemberRows rows;
  for (const ForecastMember& member : forecast.members) rows.push_back(member.*which);
  return rows;
}

}  // namespace

std::string forecast_csv(const Forecast& forecast, const Series& series) {
  std::vector<std::string> header = {"row", "kind", "true"};
  add_prediction_columns(header, forecast.net.options().seeds);
  Csv csv(header);
  const auto add = [&](const char* kind, OfMember which, std::int64_t first) {
    const MemberRows members = member_rows(forecast, which);
    for (std::size_t i = 0; i < members[0].size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      csv.add(row).add(kind);
      if (row < series.size())
        csv.add(series.values()[static_cast<std::size_t>(row)]);
      else
        csv.add("");
      add_prediction(csv, at_row(members, i));
      csv.end_row();
    }
  };
  add("one_step", &ForecastMember::one_step, series.trained());
  add("rollout", &ForecastMember::rollout, series.trained());
  add("forecast", &ForecastMember::ahead, series.size());
  return csv.text();
}

std::string series_csv(const Series& series) {
  Csv csv({"row", "value"});
  for (std::int64_t row = 0; row < series.size(); ++row) {
    csv.add(row).add(series.values()[static_cast<std::size_t>(row)]);
    csv.end_row();
  }
  return csv.text();
}

TextRows add_fits(Json& numbers, const Forecast& forecast, const Series& series, bool given,
                  const Context& context) {
  const std::vector<double> wanted = series.held_out();
  if (wanted.empty()) return {};
  TextRows table = {{"", "rows", "RMSE", "R^2"}};
  const auto add = [&](const char* name, const MemberRows& rows) {
    return add_sequence_fit(numbers, table, name, rows, wanted);
  };
  const Fit one_step = add("one_step", member_rows(forecast, &ForecastMember::one_step));
  if (given) note_another_series(one_step, context);
  add("rollout", member_rows(forecast, &ForecastMember::rollout));
  // What anyone could have said: as before.
  const auto before = series.values().begin() + series.trained() - 1;
  add("value_before", {std::vector<double>(before, before + std::ssize(wanted))});
  return table;
}

TextRows add_proof(Json& numbers, const Forecast& forecast, const Series& series) {
  std::vector<SequenceBound> bounds;
  for (const ForecastMember& member : forecast.members) bounds.push_back(member.bound);
  return add_bounds(numbers, bounds, forecast.net.options().seeds, series.units());
}

}  // namespace keel
