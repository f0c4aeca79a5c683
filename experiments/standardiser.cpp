#include "standardiser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace keel {
namespace {

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

std::string constant_note(const Examples& training, std::int64_t feature, const std::string& file) {
  return fmt::format("note: feature {} never changes in {}",
                     shown(training.names[static_cast<std::size_t>(feature)]), file);
}

}  // namespace keel
