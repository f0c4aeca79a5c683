// What is said of the predictions of nets, or of the members of an ensemble.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../core/tensor.h"
#include "command.h"
#include "output.h"
#include "statistics.h"

namespace keel {

using MemberRows = std::vector<std::vector<double>>;  ///< by member, in y's own units

/// What each member predicts for a row.
std::vector<double> at_row(const MemberRows& predictions, std::size_t row);

/// Adds to a header "prediction", and of an ensemble "std" and each seed's; and to a row the mean
/// of what its members predict, and of several their deviation and each.
void add_prediction_columns(std::vector<std::string>& header,
                            const std::vector<std::uint64_t>& seeds);
void add_prediction(Csv& csv, const std::vector<double>& of_members);

/// Columns row and prediction, as above; `rows` are their numbers, or where it is empty 0, 1, ...
std::string predictions_csv(const MemberRows& predictions, const std::vector<std::uint64_t>& seeds,
                            const std::vector<std::int64_t>& rows = {});

/// Column epoch, from 1, and each seed's mean squared error over it, of `losses` [S, epochs] as
/// TrainReport has them, in y's own units, of which one is 1 / `scale` of theirs.
std::string history_csv(const Tensor& losses, double scale,
                        const std::vector<std::uint64_t>& seeds);

struct Fit {
  Estimate rmse, r2;          ///< of a member
  double mean_rmse, mean_r2;  ///< of the members' mean prediction
};

Fit fit_of(const MemberRows& predictions, const std::vector<double>& wanted);

using TextRows = std::vector<std::vector<std::string>>;  ///< a table for people

/// Name, rows, RMSE and R^2; and of an ensemble a row of its mean prediction.
void add_fit_rows(TextRows& table, const std::string& name, const Fit& fit, std::size_t rows,
                  bool ensemble);

/// The same, and to summary.json's numbers, as `name`_rmse and so on.
void add_fit(Json& numbers, TextRows& table, const std::string& name, const Fit& fit,
             std::size_t rows, bool ensemble);

}  // namespace keel
