#include "certify_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../ntk/length.h"
#include "feature_names.h"
#include "hold_out.h"
#include "net_inputs.h"
#include "standardiser.h"

namespace keel {

TrainingRows::TrainingRows(const TrainedChoice& choice, const TrainedNet& trained,
                           const Context& context)
    : given(!choice.data.empty()) {
  const Net& net = trained.net;
  if (!given) {
    examples.rows = 1;
    examples.features = net.input_width();
    examples.x.assign(static_cast<std::size_t>(examples.features), 0);
    examples.y = {0};
    return;
  }
  examples =
      table_inputs(choice.data, choice.target, ignored_columns(choice.ignore),
                   {names_of_features(trained.features, choice.weights), choice.weights}, context);
  check<ShapeError>(examples.features == net.input_width(), "certify",
                    "{} has {} features and {} takes {}, wanted as many", choice.data,
                    examples.features, choice.weights, net.input_width());
  check(net.output_width() == 1, "certify", "got a net of {} outputs with --data, wanted 1",
        net.output_width());
  if (trained.held_out.empty() || trained.columns.empty()) return;
  RowSplit split = split_as(trained.held_out, examples, choice.weights, choice.data);
  examples = std::move(split.training);
  held_out = std::move(split.held_out);
}

Standardiser units_of(TrainingRows& rows, const TrainedNet& trained, const TrainedChoice& choice) {
  Examples& examples = rows.examples;
  if (!rows.given && !trained.columns.empty()) {
    const Standardiser units =
        Standardiser::of_columns(trained.columns, choice.weights, trained.net.input_width());
    examples.x = units.x_in_own_units(examples.x);
    return units;
  }
  const Standardiser units(parse_standardise(rows.given ? choice.standardise : "none"), examples);
  if (!trained.columns.empty())
    units.check_columns(trained.columns, choice.weights, examples, choice.target);
  return units;
}

std::vector<Interval> ranges_of(const TrainedChoice& choice, const TrainedNet& trained,
                                const Standardiser& units, const Context& context) {
  const std::string& path = choice.search.ranges;
  const Net& net = trained.net;
  const Examples rows = [&] {
    const FeatureNames known{names_of_features(trained.features, choice.weights), choice.weights};
    const IgnoredColumns ignored = ignored_columns(choice.ignore);
    const NamedFeatures named(known, "");
    if (choice.data.empty()) {
      const Table table = read_table(path, 1, named.ignored(ignored));
      context.note(named.order_note(table));
      return named.apply_to(table) ? named.examples(table) : without_target(table);
    }
    const Table training = read_table(choice.data, 1, named.ignored(ignored));
    const Table table = read_table(path, 1, named.ignored(ignored_as_in(training, choice.target)));
    if (named.apply_to(table)) return named.examples(table);
    context.note(order_note(table, training));
    return test_examples(table, training, choice.target);
  }();
  const bool one_more = choice.data.empty() && rows.features == net.input_width() + 1;
  check<ShapeError>(rows.features == net.input_width(), "certify",
                    "{} has {} columns of features and {} takes {}, wanted as many{}", path,
                    rows.features, choice.weights, net.input_width(),
                    one_more ? "; --ignore leaves a column out" : "");
  const std::vector<double> x = units.x(rows);
  const auto width = static_cast<std::size_t>(rows.features);
  std::vector<Interval> ranges;
  for (std::size_t k = 0; k < width; ++k) {
    Interval range{x[k], x[k]};
    for (std::size_t at = k; at < x.size(); at += width)
      range = {std::min(range.low, x[at]), std::max(range.high, x[at])};
    const double half = 0.5 * range.high - 0.5 * range.low;  // of a range as wide as double
    if (choice.search.widen != 1) {
      const double more = half * (choice.search.widen - 1);
      range = {range.low - more, range.high + more};
    }
    check(std::isfinite(range.low) && std::isfinite(range.high), "certify",
          "got the range [{}, {}] of {} in {}, wanted one within the number range", range.low,
          range.high, rows.names[k], path);
    ranges.push_back(range);
  }
  return ranges;
}

double farthest_of(const std::vector<Interval>& ranges) {
  std::vector<double> corner;
  for (const Interval& range : ranges)
    corner.push_back(std::max(std::abs(range.low), std::abs(range.high)));
  return std::max(length_of(corner), 1e-100);
}

Json ranges_json(const TrainedChoice& choice, const std::vector<Interval>& ranges,
                 const Standardiser& units) {
  std::vector<double> low, high;
  for (const Interval& range : ranges) {
    low.push_back(range.low);
    high.push_back(range.high);
  }
  return {{"table", choice.search.ranges},
          {"widen", choice.search.widen},
          {"low", units.x_in_own_units(low)},
          {"high", units.x_in_own_units(high)}};
}

double longest_row(const Tensor& x) {
  const std::vector<double> flat = x.to_vector<double>();
  const auto width = static_cast<std::size_t>(x.size(1));
  double largest = 0;
  for (std::size_t at = 0; at < flat.size(); at += width)
    largest = std::max(largest, length_of(&flat[at], width));
  return largest;
}

}  // namespace keel
