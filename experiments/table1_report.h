// What `keel reproduce table1` writes and prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reproduce.h"
#include "statistics.h"
#include "table1_member.h"

namespace keel {

/// A cell of the paper's Table 1: mean and half the width of its 95% interval.
struct PaperRow {
  double id, id_ci, ood, ood_ci;
};

/// Empty for methods that the paper does not have.
std::optional<PaperRow> paper_numbers(const std::string& method);

/// One method: its seeds' outcomes, and how well each fits.
struct Table1Row {
  std::string method;
  std::vector<std::uint64_t> seeds;
  std::vector<Outcome> outcomes;
  std::vector<double> id_r2, ood_r2, id_rmse, ood_rmse;  // by seed

  void add(std::uint64_t seed, Outcome outcome, const Protein& protein);
  Estimate id() const { return mean_with_interval(id_r2); }
  Estimate ood() const { return mean_with_interval(ood_r2); }
  double seconds() const;     ///< of all seeds
  double peak_bytes() const;  ///< 0: not counted
};

/// Whether two intervals have no point in common; empty where one of them is unknown.
std::optional<bool> apart(const Estimate& a, const Estimate& b);

/// table1.csv, seeds.csv, costs.csv and predictions_METHOD.csv.
void write_table1(const std::vector<Table1Row>& rows, const Protein& protein,
                  const OutputFolder& folder);

Json row_json(const Table1Row& row);
std::string table1_text(const std::vector<Table1Row>& rows);

/// The statements that the table is there to show, each true or false, and null where its rows or
/// intervals are missing.
Json statements(const std::vector<Table1Row>& rows);

}  // namespace keel
