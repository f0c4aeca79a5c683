#include "train_report.h"

#include <utility>

#include "output.h"
#include "text_table.h"

namespace keel {
namespace {

// Mean over members and their standard deviation, for each row.
std::vector<std::pair<double, double>> across_members(const MemberRows& predictions) {
  std::vector<std::pair<double, double>> result;
  std::vector<double> at(predictions.size());
  for (std::size_t row = 0; row < predictions[0].size(); ++row) {
    for (std::size_t s = 0; s < at.size(); ++s) at[s] = predictions[s][row];
    result.emplace_back(mean_with_interval(at).mean, sample_deviation(at));
  }
  return result;
}

}  // namespace

std::string predictions_csv(const MemberRows& predictions,
                            const std::vector<std::uint64_t>& seeds) {
  const bool ensemble = predictions.size() > 1;
  std::vector<std::string> header = {"row", "prediction"};
  if (ensemble) header.push_back("std");
  for (std::uint64_t seed : seeds)
    if (ensemble) header.push_back(fmt::format("seed_{}", seed));
  Csv csv(header);
  const auto means = across_members(predictions);
  for (std::size_t row = 0; row < means.size(); ++row) {
    csv.add(static_cast<std::int64_t>(row)).add(means[row].first);
    if (ensemble) csv.add(means[row].second);
    for (const auto& member : predictions)
      if (ensemble) csv.add(member[row]);
    csv.end_row();
  }
  return csv.text();
}

Fit fit_of(const MemberRows& predictions, const std::vector<double>& wanted) {
  std::vector<double> errors, r2s, mean;
  for (const auto& member : predictions) {
    errors.push_back(rmse(member, wanted));
    r2s.push_back(r_squared(member, wanted));
  }
  for (const auto& [value, deviation] : across_members(predictions)) mean.push_back(value);
  return {mean_with_interval(errors), mean_with_interval(r2s), rmse(mean, wanted),
          r_squared(mean, wanted)};
}

void add_fit(Json& numbers, std::vector<std::vector<std::string>>& table, const std::string& name,
             const Fit& fit, std::size_t rows, bool ensemble) {
  numbers[name + "_rmse"] = fit.rmse.mean;
  numbers[name + "_rmse_ci"] = fit.rmse.half_width;
  numbers[name + "_r2"] = fit.r2.mean;
  numbers[name + "_r2_ci"] = fit.r2.half_width;
  numbers[name + "_rmse_of_mean"] = fit.mean_rmse;
  numbers[name + "_r2_of_mean"] = fit.mean_r2;
  table.push_back({name, std::to_string(rows), brief(fit.rmse.mean, fit.rmse.half_width, 4),
                   brief(fit.r2.mean, fit.r2.half_width, 4)});
  if (ensemble)
    table.push_back({"  mean prediction", "", brief(fit.mean_rmse, 4), brief(fit.mean_r2, 4)});
}

}  // namespace keel
