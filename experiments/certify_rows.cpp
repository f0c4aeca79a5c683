#include "certify_rows.h"

#include <algorithm>

#include "../ntk/length.h"

namespace keel {

TrainingRows::TrainingRows(const TrainedChoice& choice, const Net& net)
    : given(!choice.data.empty()) {
  if (!given) {
    examples.rows = 1;
    examples.features = net.input_width();
    examples.x.assign(static_cast<std::size_t>(examples.features), 0);
    examples.y = {0};
    return;
  }
  examples =
      training_examples(read_table(choice.data, 1, ignored_columns(choice.ignore)), choice.target);
  check<ShapeError>(examples.features == net.input_width(), "certify",
                    "{} has {} features and {} takes {}, wanted as many", choice.data,
                    examples.features, choice.weights, net.input_width());
  check(net.output_width() == 1, "certify", "got a net of {} outputs with --data, wanted 1",
        net.output_width());
}

Standardiser units_of(TrainingRows& rows, const TrainedNet& trained, const TrainedChoice& choice) {
  Examples& examples = rows.examples;
  if (!rows.given && !trained.columns.empty()) {
    const Standardiser units = units_of_file(trained, choice.weights);
    examples.x = units.x_in_own_units(examples.x);
    return units;
  }
  const Standardiser units(parse_standardise(rows.given ? choice.standardise : "none"), examples);
  if (!trained.columns.empty())
    units.check_columns(trained.columns, choice.weights, examples, choice.target);
  return units;
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
