#include "table1_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "text_table.h"

namespace keel {
namespace {

// Ziomek et al. 2025, Table 1.
const std::map<std::string, PaperRow>& paper_table() {
  static const std::map<std::string, PaperRow> table = {{"standard", {0.58, 0.01, 0.31, 0.02}},
                                                        {"ln_first", {0.59, 0.01, 0.50, 0.02}},
                                                        {"ln_second", {0.60, 0.01, 0.50, 0.01}},
                                                        {"ln_every", {0.60, 0.01, 0.50, 0.02}},
                                                        {"xgboost", {0.61, 0.01, 0.27, 0.04}}};
  return table;
}

bool is_kernel(const Table1Row& row) { return row.method.starts_with("ntk_"); }

// Of a kernel's row, on |prediction - mean of the training targets|; infinity where there is none.
double bound_of(const Table1Row& row) {
  double largest = 0;
  for (const Outcome& outcome : row.outcomes) {
    const Json& bound = outcome.details.at("bound");  // null: infinity, once it was in a file
    largest = std::max(
        largest, bound.is_number() ? bound.get<double>() : std::numeric_limits<double>::infinity());
  }
  return largest;
}

std::string bound_text(const Table1Row& row) {
  return is_kernel(row) ? shortest(bound_of(row)) : "";
}

std::string table_csv(const std::vector<Table1Row>& rows) {
  Csv csv({"method", "seeds", "id_r2", "id_r2_ci", "ood_r2", "ood_r2_ci", "id_rmse", "id_rmse_ci",
           "ood_rmse", "ood_rmse_ci", "bound"});
  for (const Table1Row& row : rows) {
    csv.add(row.method).add(static_cast<std::int64_t>(row.seeds.size()));
    for (const auto* values : {&row.id_r2, &row.ood_r2, &row.id_rmse, &row.ood_rmse}) {
      const Estimate estimate = mean_with_interval(*values);
      csv.add(estimate.mean).add(estimate.half_width);
    }
    csv.add(bound_text(row)).end_row();
  }
  return csv.text();
}

std::string seeds_csv(const std::vector<Table1Row>& rows) {
  Csv csv({"method", "seed", "id_r2", "ood_r2", "id_rmse", "ood_rmse"});
  for (const Table1Row& row : rows)
    for (std::size_t s = 0; s < row.seeds.size(); ++s)
      csv.add(row.method)
          .add(std::to_string(row.seeds[s]))
          .add(row.id_r2[s])
          .add(row.ood_r2[s])
          .add(row.id_rmse[s])
          .add(row.ood_rmse[s])
          .end_row();
  return csv.text();
}

// Apart from table1.csv, which a resumed run must end with to the last bit.
std::string costs_csv(const std::vector<Table1Row>& rows) {
  Csv csv({"method", "seed", "seconds", "peak_bytes"});
  for (const Table1Row& row : rows)
    for (std::size_t s = 0; s < row.seeds.size(); ++s) {
      csv.add(row.method).add(std::to_string(row.seeds[s])).add(row.outcomes[s].seconds);
      const double peak = row.outcomes[s].peak_bytes;
      peak > 0 ? csv.add(static_cast<std::int64_t>(peak)) : csv.add("");
      csv.end_row();
    }
  return csv.text();
}

std::string ood_csv(const Table1Row& row, const Protein& protein,
                    const std::vector<std::int64_t>& ood) {
  std::vector<std::string> header = {"row", "area", "target", "prediction"};
  for (std::uint64_t seed : row.seeds) header.push_back(fmt::format("seed_{}", seed));
  Csv csv(header);
  for (std::size_t i = 0; i < ood.size(); ++i) {
    double sum = 0;
    for (const Outcome& outcome : row.outcomes) sum += outcome.ood[i];
    csv.add(ood[i]).add(protein.area(ood[i])).add(protein.rows.y[ood[i]]);
    csv.add(sum / static_cast<double>(row.outcomes.size()));
    for (const Outcome& outcome : row.outcomes) csv.add(outcome.ood[i]);
    csv.end_row();
  }
  return csv.text();
}

Estimate id_of(const PaperRow& paper) { return {paper.id, paper.id_ci}; }
Estimate ood_of(const PaperRow& paper) { return {paper.ood, paper.ood_ci}; }

// "*" where the intervals have no point in common.
std::string mark(const Estimate& ours, const Estimate& theirs) {
  return apart(ours, theirs).value_or(false) ? "*" : "";
}

std::string cell(const Estimate& estimate) {
  return std::isfinite(estimate.half_width)
             ? fmt::format("{:.3f} +- {:.3f}", estimate.mean, estimate.half_width)
             : fmt::format("{:.3f}", estimate.mean);
}

const Table1Row* find(const std::vector<Table1Row>& rows, const std::string& method) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const Table1Row& row) { return row.method == method; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::optional<PaperRow> paper_numbers(const std::string& method) {
  const auto found = paper_table().find(method);
  return found == paper_table().end() ? std::nullopt : std::optional(found->second);
}

void Table1Row::add(std::uint64_t seed, Outcome outcome, const Protein& protein) {
  const ProteinSplit split = split_protein(protein, seed);
  const std::vector<double> id_wanted = examples_at(protein.rows, split.id).y;
  const std::vector<double> ood_wanted = examples_at(protein.rows, split.ood).y;
  seeds.push_back(seed);
  id_r2.push_back(r_squared(outcome.id, id_wanted));
  ood_r2.push_back(r_squared(outcome.ood, ood_wanted));
  id_rmse.push_back(rmse(outcome.id, id_wanted));
  ood_rmse.push_back(rmse(outcome.ood, ood_wanted));
  outcomes.push_back(std::move(outcome));
}

double Table1Row::seconds() const {
  double sum = 0;
  for (const Outcome& outcome : outcomes) sum += outcome.seconds;
  return sum;
}

double Table1Row::peak_bytes() const {
  double peak = 0;
  for (const Outcome& outcome : outcomes) peak = std::max(peak, outcome.peak_bytes);
  return peak;
}

std::optional<bool> apart(const Estimate& a, const Estimate& b) {
  if (!std::isfinite(a.half_width) || !std::isfinite(b.half_width)) return {};
  return std::abs(a.mean - b.mean) > a.half_width + b.half_width;
}

void write_table1(const std::vector<Table1Row>& rows, const Protein& protein,
                  const OutputFolder& folder) {
  folder.write("table1.csv", table_csv(rows));
  folder.write("seeds.csv", seeds_csv(rows));
  folder.write("costs.csv", costs_csv(rows));
  for (const Table1Row& row : rows)
    folder.write(fmt::format("predictions_{}.csv", row.method),
                 ood_csv(row, protein, split_protein(protein, row.seeds[0]).ood));
}

Json row_json(const Table1Row& row) {
  const Estimate id = row.id(), ood = row.ood();
  const Estimate id_rmse = mean_with_interval(row.id_rmse);
  const Estimate ood_rmse = mean_with_interval(row.ood_rmse);
  Json json = {{"method", row.method},
               {"seeds", row.seeds},
               {"id_r2", id.mean},
               {"id_r2_ci", id.half_width},
               {"ood_r2", ood.mean},
               {"ood_r2_ci", ood.half_width},
               {"id_rmse", id_rmse.mean},
               {"id_rmse_ci", id_rmse.half_width},
               {"ood_rmse", ood_rmse.mean},
               {"ood_rmse_ci", ood_rmse.half_width},
               {"seconds", row.seconds()},
               {"peak_bytes", row.peak_bytes() > 0 ? Json(row.peak_bytes()) : Json()}};
  if (const auto paper = paper_numbers(row.method)) {
    const auto as_json = [](const std::optional<bool>& value) {
      return value ? Json(*value) : Json();
    };
    json["paper"] = {{"id_r2", paper->id},
                     {"id_r2_ci", paper->id_ci},
                     {"ood_r2", paper->ood},
                     {"ood_r2_ci", paper->ood_ci},
                     {"id_apart", as_json(apart(id, id_of(*paper)))},
                     {"ood_apart", as_json(apart(ood, ood_of(*paper)))}};
  }
  Json details = Json::array();
  for (const Outcome& outcome : row.outcomes) details.push_back(outcome.details);
  json["details"] = details;
  return json;
}

std::string table1_text(const std::vector<Table1Row>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"", "seeds", "ID R^2", "paper", "", "OOD R^2", "paper", "", "seconds", "peak", "bound"}};
  for (const Table1Row& row : rows) {
    const Estimate id = row.id(), ood = row.ood();
    const auto paper = paper_numbers(row.method);
    cells.push_back(
        {row.method, std::to_string(row.seeds.size()), cell(id),
         paper ? fmt::format("{:.2f} +- {:.2f}", paper->id, paper->id_ci) : "-",
         paper ? mark(id, id_of(*paper)) : "", cell(ood),
         paper ? fmt::format("{:.2f} +- {:.2f}", paper->ood, paper->ood_ci) : "-",
         paper ? mark(ood, ood_of(*paper)) : "", fmt::format("{:.1f}", row.seconds()),
         row.peak_bytes() > 0 ? human_bytes(static_cast<std::size_t>(row.peak_bytes())) : "-",
         is_kernel(row) ? brief_outward(bound_of(row), 4, 1) : ""});
  }
  return text_table(cells, 1);
}

Json statements(const std::vector<Table1Row>& rows) {
  const auto beats = [&](const char* better, const char* worse) -> Json {
    const Table1Row *a = find(rows, better), *b = find(rows, worse);
    if (!a || !b) return {};
    const auto known = apart(a->ood(), b->ood());
    return known ? Json(*known && a->ood().mean > b->ood().mean) : Json();
  };
  Json json = Json::object();
  for (const char* net : {"ln_first", "ln_second", "ln_every"})
    for (const char* other : {"standard", "xgboost"})
      json[fmt::format("{}_beats_{}_ood", net, other)] = beats(net, other);
  double low = 1, high = -1;
  std::size_t paper_rows = 0;
  for (const Table1Row& row : rows) {
    if (!paper_numbers(row.method)) continue;
    ++paper_rows;
    low = std::min(low, row.id().mean);
    high = std::max(high, row.id().mean);
  }
  json["within_0.05_id"] = paper_rows > 1 ? Json(high - low <= 0.05) : Json();
  return json;
}

}  // namespace keel
