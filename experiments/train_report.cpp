#include "train_report.h"

#include "text_table.h"

namespace keel {

std::vector<double> at_row(const MemberRows& predictions, std::size_t row) {
  std::vector<double> values;
  for (const std::vector<double>& member : predictions) values.push_back(member[row]);
  return values;
}

void add_prediction_columns(std::vector<std::string>& header,
                            const std::vector<std::uint64_t>& seeds) {
  header.push_back("prediction");
  if (seeds.size() == 1) return;
  header.push_back("std");
  for (std::uint64_t seed : seeds) header.push_back(fmt::format("seed_{}", seed));
}

void add_prediction(Csv& csv, const std::vector<double>& of_members) {
  csv.add(mean_with_interval(of_members).mean);
  if (of_members.size() == 1) return;
  csv.add(sample_deviation(of_members));
  for (double value : of_members) csv.add(value);
}

std::string predictions_csv(const MemberRows& predictions, const std::vector<std::uint64_t>& seeds,
                            const std::vector<std::int64_t>& rows) {
  std::vector<std::string> header = {"row"};
  add_prediction_columns(header, seeds);
  Csv csv(header);
  for (std::size_t row = 0; row < predictions[0].size(); ++row) {
    csv.add(rows.empty() ? static_cast<std::int64_t>(row) : rows[row]);
    add_prediction(csv, at_row(predictions, row));
    csv.end_row();
  }
  return csv.text();
}

std::string history_csv(const Tensor& losses, double scale,
                        const std::vector<std::uint64_t>& seeds) {
  std::vector<std::string> header = {"epoch"};
  for (std::uint64_t seed : seeds)
    header.push_back(seeds.size() == 1 ? "mse" : fmt::format("mse_seed_{}", seed));
  Csv csv(header);
  const std::vector<double> all = losses.to_vector<double>();
  const auto epochs = static_cast<std::size_t>(losses.size(1));
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    csv.add(static_cast<std::int64_t>(epoch + 1));
    for (std::size_t s = 0; s < seeds.size(); ++s) csv.add(scale * scale * all[s * epochs + epoch]);
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
  for (std::size_t row = 0; row < wanted.size(); ++row)
    mean.push_back(mean_with_interval(at_row(predictions, row)).mean);
  return {mean_with_interval(errors), mean_with_interval(r2s), rmse(mean, wanted),
          r_squared(mean, wanted)};
}

void add_fit_rows(TextRows& table, const std::string& name, const Fit& fit, std::size_t rows,
                  bool ensemble) {
  table.push_back({name, std::to_string(rows), brief(fit.rmse.mean, fit.rmse.half_width, 4),
                   brief(fit.r2.mean, fit.r2.half_width, 4)});
  if (ensemble)
    table.push_back({"  mean prediction", "", brief(fit.mean_rmse, 4), brief(fit.mean_r2, 4)});
}

void add_fit(Json& numbers, TextRows& table, const std::string& name, const Fit& fit,
             std::size_t rows, bool ensemble) {
  numbers[name + "_rmse"] = fit.rmse.mean;
  numbers[name + "_rmse_ci"] = fit.rmse.half_width;
  numbers[name + "_r2"] = fit.r2.mean;
  numbers[name + "_r2_ci"] = fit.r2.half_width;
  numbers[name + "_rmse_of_mean"] = fit.mean_rmse;
  numbers[name + "_r2_of_mean"] = fit.mean_r2;
  add_fit_rows(table, name, fit, rows, ensemble);
}

}  // namespace keel
