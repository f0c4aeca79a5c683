#include "examples.h"

#include <algorithm>
#include <utility>

#include "../nn/spec_word.h"

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

}  // namespace

bool all_differ(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

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
  examples.named = !table.names.empty() && all_differ(table.names);
  for (std::int64_t col : features)
    examples.names.push_back(table.names.empty() ? fmt::format("column {} (from 0)", col)
                                                 : table.names[col]);
  return examples;
}

Examples examples_at(const Examples& all, std::span<const std::int64_t> rows) {
  Examples some;
  some.rows = std::ssize(rows);
  some.features = all.features;
  some.names = all.names;
  some.named = all.named;
  some.x.reserve(static_cast<std::size_t>(some.rows * some.features));
  for (std::int64_t row : rows) {
    const double* x = all.x.data() + row * all.features;
    some.x.insert(some.x.end(), x, x + all.features);
    if (!all.y.empty()) some.y.push_back(all.y[static_cast<std::size_t>(row)]);
  }
  return some;
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

IgnoredColumns ignored_if_there(std::vector<std::string> columns) {
  return [columns = std::move(columns)](const Table& table) {
    std::vector<std::int64_t> found;
    for (const std::string& column : columns) {
      std::int64_t number = 0;
      const bool there =
          table.names.empty() || parse_whole(column, number) ||
          std::find(table.names.begin(), table.names.end(), column) != table.names.end();
      if (there) found.push_back(find_column(table, column));
    }
    return found;
  };
}

IgnoredColumns ignored_as_in(const Table& training, const std::string& target) {
  const std::int64_t at = find_column(training, target);
  return [&training, at](const Table& table) {
    const bool named = !table.names.empty() && !training.names.empty();
    const bool lacks_target = table.cols == training.cols - 1;
    std::vector<std::int64_t> found;
    if (named && all_differ(table.names) && all_differ(training.names)) {
      for (std::int64_t col = 0; col < table.cols; ++col) {
        const auto at = std::find(training.names.begin(), training.names.end(), table.names[col]) -
                        training.names.begin();
        if (at == std::ssize(training.names) || training.ignores(at)) found.push_back(col);
      }
      return found;
    }
    for (std::int64_t col = 0; col < training.cols; ++col) {
      if (!training.ignores(col)) continue;
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
  if (named && all_differ(table.names) && all_differ(training.names))
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

}  // namespace keel
