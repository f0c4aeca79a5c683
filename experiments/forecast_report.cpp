#include "forecast_report.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "output.h"
#include "text_table.h"
#include "train_report.h"

namespace keel {
namespace {

using OfMember = std::vector<double> ForecastMember::*;

MemberRows rows_of(const Forecast& forecast, OfMember which) {
  MemberRows rows;
  for (const ForecastMember& member : forecast.members) rows.push_back(member.*which);
  return rows;
}

// The hull of all seeds' intervals, in the net's units; none without Layer Norm.
std::optional<Interval> proved_of(const Forecast& forecast) {
  std::optional<Interval> all = forecast.members[0].proved;
  for (const ForecastMember& member : forecast.members)
    if (all)
      all = {std::min(all->low, member.proved->low), std::max(all->high, member.proved->high)};
  return all;
}

const ForecastMember& largest_of(const Forecast& forecast) {
  return *std::max_element(forecast.members.begin(), forecast.members.end(),
                           [](const ForecastMember& a, const ForecastMember& b) {
                             return a.largest.value < b.largest.value;
                           });
}

Json interval_json(const Interval& interval) { return {interval.low, interval.high}; }

}  // namespace

std::string forecast_csv(const Forecast& forecast, const Series& series) {
  std::vector<std::string> header = {"row", "kind", "true"};
  add_prediction_columns(header, forecast.net.options().seeds);
  Csv csv(header);
  const auto add = [&](const char* kind, OfMember which, std::int64_t first) {
    const MemberRows members = rows_of(forecast, which);
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

TextRows add_fits(Json& numbers, const Forecast& forecast, const Series& series) {
  const std::vector<double> wanted = series.held_out();
  if (wanted.empty()) return {};
  TextRows table = {{"", "rows", "RMSE", "R^2"}};
  const auto add = [&](const char* name, const MemberRows& rows) {
    const Fit fit = fit_of(rows, wanted);
    const bool several = rows.size() > 1;
    numbers[name] = {{"rmse", fit.rmse.mean}, {"r2", fit.r2.mean}};
    if (several)
      numbers[name].update({{"rmse_ci", fit.rmse.half_width},
                            {"r2_ci", fit.r2.half_width},
                            {"rmse_of_mean", fit.mean_rmse},
                            {"r2_of_mean", fit.mean_r2}});
    table.push_back({name, std::to_string(wanted.size()),
                     brief(fit.rmse.mean, fit.rmse.half_width, 4),
                     brief(fit.r2.mean, fit.r2.half_width, 4)});
    if (several)
      table.push_back({"  mean prediction", "", brief(fit.mean_rmse, 4), brief(fit.mean_r2, 4)});
  };
  add("one_step", rows_of(forecast, &ForecastMember::one_step));
  add("rollout", rows_of(forecast, &ForecastMember::rollout));
  // What anyone could have said: as before.
  const auto before = series.values().begin() + series.trained() - 1;
  add("value_before", {std::vector<double>(before, before + std::ssize(wanted))});
  return table;
}

TextRows add_proof(Json& numbers, const Forecast& forecast, const Series& series) {
  const std::string about =
      series.centre() == 0 ? "|f|" : fmt::format("|f - {}|", brief(series.centre(), 6));
  TextRows table;
  numbers["centre"] = series.centre();
  numbers["bounded"] = forecast.net.options().layer_norm;
  numbers["bound"] = nullptr;
  numbers["interval"] = nullptr;
  if (const std::optional<Interval> all = proved_of(forecast)) {
    const Interval own = series.in_own_units(*all);
    const double bound = std::max(-all->low, all->high) * series.scale();
    numbers["bound"] = bound;
    numbers["interval"] = interval_json(own);
    for (const ForecastMember& member : forecast.members)
      numbers["interval_by_seed"].push_back(interval_json(series.in_own_units(*member.proved)));
    table.push_back(
        {"proved: whatever the sequence, no prediction is outside",
         fmt::format("[{}, {}]", brief_outward(own.low, 5, -1), brief_outward(own.high, 5, 1))});
    table.push_back({"proved: " + about + " is at most", brief_outward(bound, 5, 1)});
  } else {
    table.push_back({"bound of " + about, "none: no Layer Norm"});
  }
  const ForecastMember& largest = largest_of(forecast);
  const double found = largest.largest.value * series.scale();
  numbers["largest_found"] = found;
  numbers["largest_found_at"] = {{"sequence", series.in_own_units(largest.largest.x)}};
  numbers["evaluations"] = largest.largest.evaluations;
  table.push_back({"largest " + about + " found", brief(found, 5)});
  if (largest.beyond) {
    const double beyond = largest.beyond->value * series.scale();
    numbers["exceeded_by"] = beyond;
    numbers["exceeded_at"] = {{"sequence", series.in_own_units(largest.beyond->x)}};
    table.push_back({"farther out", brief(beyond, 5) + " (summary.json)"});
  }
  return table;
}

}  // namespace keel
