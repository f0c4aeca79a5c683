#include "examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace keel {
namespace {

// Where in `table` each feature of the training table is, and the target: -1 where it is absent.
struct Places {
  std::vector<std::int64_t> features;
  std::int64_t target = -1;
};

Examples gather(const Table& table, const Places& places) {
  return gathered(table, places.features, places.target);
}

Places all_but(const Table& table, std::int64_t target) {
  Places places;
  places.target = target;
  for (std::int64_t col = 0; col < table.cols; ++col)
    if (col != target && !table.ignores(col)) places.features.push_back(col);
  return places;
}

bool unique_names(const Table& table) {
  std::vector<std::string> sorted = table.names;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

Places by_name(const Table& table, const Table& training, std::int64_t target) {
  Places places;
  for (std::int64_t col = 0; col < training.cols; ++col) {
    const auto found = std::find(table.names.begin(), table.names.end(), training.names[col]);
    const auto at = found == table.names.end() ? -1 : found - table.names.begin();
    if (col == target) {
      places.target = at;
      continue;
    }
    if (training.ignores(col)) continue;
    if (at < 0)
      throw DataError(table.file,
                      fmt::format("line 1: there is no column '{}', which {} has",
                                  training.names[col], training.file),
                      1);
    places.features.push_back(at);
  }
  return places;
}

// [mean, deviation] of each column, the target's last.
std::vector<std::array<double, 2>> columns_of(const std::string& text, const std::string& weights) {
  std::vector<std::array<double, 2>> columns;
  try {
    columns = nlohmann::json::parse(text).get<decltype(columns)>();
  } catch (const nlohmann::json::exception&) {
  }
  const bool sound = std::all_of(columns.begin(), columns.end(), [](const auto& column) {
    return std::isfinite(column[0]) && std::isfinite(column[1]) && column[1] > 0;
  });
  if (columns.size() < 2 || !sound)
    throw DataError(weights, fmt::format("got '{}' for {}, wanted [[mean, deviation], ...]",
                                         shown(text), kColumnsKey));
  return columns;
}

}  // namespace

Examples gathered(const Table& table, const std::vector<std::int64_t>& features,
                  std::int64_t target) {
  Examples examples;
  examples.rows = table.rows;
  examples.features = std::ssize(features);
  examples.x.reserve(static_cast<std::size_t>(examples.rows * examples.features));
  for (std::int64_t row = 0; row < table.rows; ++row) {
    for (std::int64_t col : features) examples.x.push_back(table.at(row, col));
    if (target >= 0) examples.y.push_back(table.at(row, target));
  }
  for (std::int64_t col : features)
    examples.names.push_back(table.names.empty() ? fmt::format("column {}", col + 1)
                                                 : table.names[col]);
  return examples;
}

Examples training_examples(const Table& table, const std::string& target) {
  const std::int64_t at = find_column(table, target);
  if (table.cols < 2)
    throw DataError(table.file, "got 1 column, wanted the target and at least one feature");
  if (table.ignores(at))
    throw DataError(table.file, fmt::format("got column '{}' for the target and to ignore, wanted "
                                            "one of both",
                                            shown(target)));
  const Places places = all_but(table, at);
  if (places.features.empty())
    throw DataError(table.file,
                    "got no column but the target that is not ignored, wanted at least "
                    "one feature");
  return gather(table, places);
}

Examples without_target(const Table& table) {
  const Places places = all_but(table, -1);
  if (places.features.empty())
    throw DataError(table.file, "got no column that is not ignored, wanted at least one feature");
  return gather(table, places);
}

IgnoredColumns ignored_columns(std::vector<std::string> columns) {
  return [columns = std::move(columns)](const Table& table) {
    std::vector<std::int64_t> found;
    for (const std::string& column : columns) found.push_back(find_column(table, column));
    return found;
  };
}

IgnoredColumns ignored_as_in(const Table& training, const std::string& target) {
  const std::int64_t at = find_column(training, target);
  return [&training, at](const Table& table) {
    const bool named = !table.names.empty() && !training.names.empty();
    const bool lacks_target = table.cols == training.cols - 1;
    std::vector<std::int64_t> found;
    for (std::int64_t col = 0; col < training.cols; ++col) {
      if (!training.ignores(col)) continue;
      if (named && unique_names(table) && unique_names(training)) {
        const auto name = std::find(table.names.begin(), table.names.end(), training.names[col]);
        if (name != table.names.end()) found.push_back(name - table.names.begin());
        continue;
      }
      const std::int64_t place = col - (lacks_target && col > at);
      if (place < table.cols) found.push_back(place);  // of fewer test_examples() tells
    }
    return found;
  };
}

std::string order_note(const Table& table, const Table& training) {
  if (table.names.empty() == training.names.empty()) return "";
  return fmt::format("note: {} has a header and {} has none: columns are taken in their order",
                     table.names.empty() ? training.file : table.file,
                     table.names.empty() ? table.file : training.file);
}

Examples test_examples(const Table& table, const Table& training, const std::string& target) {
  const std::int64_t at = find_column(training, target);
  const bool named = !table.names.empty() && !training.names.empty();
  if (named && unique_names(table) && unique_names(training))
    return gather(table, by_name(table, training, at));
  if (named) {  // by position, then: but only where the names are the same ones
    std::vector<std::string> wanted = training.names;
    if (table.cols == training.cols - 1) wanted.erase(wanted.begin() + at);
    if (table.names != wanted)
      throw DataError(table.file,
                      fmt::format("line 1: names repeat here or in {}: wanted the same ones in the "
                                  "same order, with or without the target",
                                  training.file),
                      1);
  }
  if (table.cols == training.cols) return gather(table, all_but(table, at));
  if (table.cols == training.cols - 1) return gather(table, all_but(table, -1));
  throw DataError(table.file,
                  fmt::format("got {} columns, wanted the {} of {}, with or without the target",
                              table.cols, training.cols, training.file));
}

Standardise parse_standardise(const std::string& text) {
  if (text == "none") return Standardise::none;
  if (text == "x") return Standardise::x;
  check(text == "xy", "standardise", "got '{}', wanted none, x or xy", text);
  return Standardise::xy;
}

Standardiser::Standardiser(Standardise what, const Examples& training)
    : x_(static_cast<std::size_t>(training.features)) {
  const double n = static_cast<double>(training.rows);
  // `at(row)` is the column's value; false where it never changes.
  const auto fit = [&](Column& column, auto at) {
    bool changes = false;
    double largest = 0, sum = 0, squares = 0;
    for (std::int64_t row = 0; row < training.rows; ++row) {
      largest = std::max(largest, std::abs(at(row)));
      changes |= at(row) != at(0);
    }
    column.mean = at(0);
    if (!changes) return false;
    // In units of a power of two, which round nothing: the squares of 1e200 would be infinite.
    const int unit = std::ilogb(largest);
    const auto in_units = [&](std::int64_t row) { return std::ldexp(at(row), -unit); };
    for (std::int64_t row = 0; row < training.rows; ++row) sum += in_units(row);
    for (std::int64_t row = 0; row < training.rows; ++row)
      squares += (in_units(row) - sum / n) * (in_units(row) - sum / n);
    column.mean = std::ldexp(sum / n, unit);
    const double scale = std::ldexp(std::sqrt(squares / n), unit);
    if (scale > 0) column.scale = scale;  // of denormal numbers it may vanish
    return true;
  };
  if (what == Standardise::xy) fit(y_, [&](std::int64_t row) { return training.y[row]; });
  for (std::int64_t col = 0; col < training.features; ++col) {
    Column column;
    if (!fit(column, [&](std::int64_t row) { return training.x[row * training.features + col]; }))
      constant_.push_back(col);
    if (what != Standardise::none) x_[col] = column;
  }
}

Standardiser Standardiser::none(std::int64_t features) {
  Standardiser result;
  result.x_.resize(static_cast<std::size_t>(features));
  return result;
}

Standardiser Standardiser::of_columns(const std::string& text, const std::string& weights,
                                      std::int64_t features) {
  Standardiser result;
  for (const auto& [mean, scale] : columns_of(text, weights)) result.x_.push_back({mean, scale});
  result.y_ = result.x_.back();
  result.x_.pop_back();
  check<ShapeError>(result.features() == features, "weights",
                    "{} has the units of {} features and a net of {}, wanted as many", weights,
                    result.features(), features);
  return result;
}

Standardiser Standardiser::with_x_of(const Standardiser& other) const {
  Standardiser result = *this;
  result.x_ = other.x_;
  return result;
}

bool Standardiser::moves_x() const {
  return std::any_of(x_.begin(), x_.end(),
                     [](const Column& column) { return column.mean != 0 || column.scale != 1; });
}

std::vector<double> Standardiser::x(const Examples& examples) const {
  std::vector<double> result(examples.x.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Column& column = x_[i % x_.size()];
    result[i] = (examples.x[i] - column.mean) / column.scale;
  }
  return result;
}

std::vector<double> Standardiser::y(const Examples& examples) const {
  std::vector<double> result(examples.y.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = (examples.y[i] - y_.mean) / y_.scale;
  return result;
}

Tensor Standardiser::inputs(const Examples& examples, Device device) const {
  return Tensor::from(x(examples), {examples.rows, examples.features}).to(device);
}

Tensor Standardiser::targets(const Examples& examples, Device device) const {
  return Tensor::from(y(examples), {examples.rows, 1}).to(device);
}

std::vector<double> Standardiser::y_in_own_units(std::vector<double> standardised) const {
  for (double& value : standardised) value = y_in_own_units(value);
  return standardised;
}

std::vector<double> Standardiser::x_in_own_units(const std::vector<double>& standardised) const {
  check<ShapeError>(standardised.size() == x_.size(), "standardise", "got {} features, wanted {}",
                    standardised.size(), x_.size());
  std::vector<double> result(x_.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = standardised[i] * x_[i].scale + x_[i].mean;
  return result;
}

std::string Standardiser::columns() const {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i <= x_.size(); ++i) all.push_back({column(i).mean, column(i).scale});
  return all.dump();
}

void Standardiser::check_columns(const std::string& text, const std::string& weights,
                                 const Examples& examples, const std::string& target) const {
  const std::vector<std::array<double, 2>> columns = columns_of(text, weights);
  if (columns.size() != x_.size() + 1)
    throw DataError(weights, fmt::format("is of a net trained on {} features, got {}",
                                         std::ssize(columns) - 1, x_.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    constexpr double kSame = 1e-6;
    const auto [mean, scale] = columns[i];
    const double apart = std::abs(mean - column(i).mean) / scale;
    // A mean that is large beside the deviation is rounded more than that.
    const double rounding = 1e-12 * std::abs(mean) / scale;
    if (apart <= kSame + rounding && std::abs(column(i).scale / scale - 1) <= kSame + rounding)
      continue;
    throw DataError(
        weights,
        fmt::format("is of a net trained on rows whose {} has mean {:.6g} and deviation {:.6g}, "
                    "got {:.6g} and {:.6g}: wanted --data and --target of its training, as its "
                    "units are theirs",
                    i < x_.size() ? fmt::format("feature {}", shown(examples.names[i]))
                                  : fmt::format("target {}", shown(target)),
                    mean, scale, column(i).mean, column(i).scale));
  }
}

}  // namespace keel
