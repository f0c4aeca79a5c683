#include "feature_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace keel {
std::string feature_names(const Examples& examples) {
  return examples.named ? nlohmann::json(examples.names).dump() : "";
}

std::vector<std::string> names_of_features(const std::string& text, const std::string& weights) {
  if (text.empty()) return {};
  std::vector<std::string> names;
  try {
    names = nlohmann::json::parse(text).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
  }
  if (names.empty() || !all_differ(names))
    throw DataError(weights, fmt::format("got '{}' for {}, wanted [\"name\", ...], all different",
                                         shown(text), kFeaturesKey));
  return names;
}

std::string quoted_names(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names)
    all += fmt::format("{}'{}'", all.empty() ? "" : ", ", shown(name));
  return all;
}

bool NamedFeatures::apply_to(const Table& table) const {
  return !known_.names.empty() && !table.names.empty() && all_differ(table.names);
}

bool NamedFeatures::is_feature(const std::string& name) const {
  return std::find(known_.names.begin(), known_.names.end(), name) != known_.names.end();
}

std::int64_t NamedFeatures::target_in(const Table& table) const {
  return target_.empty() ? -1 : find_column(table, target_);
}

IgnoredColumns NamedFeatures::ignored(IgnoredColumns otherwise) const {
  return [this, otherwise = std::move(otherwise)](const Table& table) {
    std::vector<std::int64_t> columns = otherwise(table);
    if (!apply_to(table)) return columns;
    const std::int64_t target = target_in(table);
    for (std::int64_t col = 0; col < table.cols; ++col)
      if (col != target && !is_feature(table.names[static_cast<std::size_t>(col)]))
        columns.push_back(col);
    return columns;
  };
}

Examples NamedFeatures::examples(const Table& table) const {
  std::vector<std::int64_t> places;
  for (const std::string& name : known_.names) {
    const auto at = std::find(table.names.begin(), table.names.end(), name) - table.names.begin();
    if (at == std::ssize(table.names) || table.ignores(at))
      throw DataError(table.file,
                      fmt::format("line 1: {} column '{}', which is a feature of {}",
                                  at == std::ssize(table.names) ? "there is no" : "ignored",
                                  shown(name), known_.file),
                      1);
    places.push_back(at);
  }
  const std::int64_t target = target_in(table);
  if (target >= 0 && is_feature(table.names[static_cast<std::size_t>(target)]))
    throw DataError(table.file, fmt::format("got column '{}' for the target, which is a feature of "
                                            "{}",
                                            shown(target_), known_.file));
  return gathered(table, places, target);
}

std::string NamedFeatures::order_note(const Table& table) const {
  if (apply_to(table) || known_.file.empty()) return "";
  if (known_.names.empty() && table.names.empty()) return "";
  return fmt::format("note: {} {}: features are taken in their order",
                     known_.names.empty() ? known_.file : table.file,
                     known_.names.empty()  ? "has no names of its features"
                     : table.names.empty() ? "has no header"
                                           : "has a header in which names repeat");
}

std::string NamedFeatures::others(const Table& table) const {
  const std::int64_t target = target_in(table);
  std::vector<std::string> others;
  for (std::int64_t col = 0; col < table.cols; ++col) {
    const std::string& name = table.names[static_cast<std::size_t>(col)];
    if (col != target && !is_feature(name)) others.push_back(name);
  }
  return quoted_names(others);
}

}  // namespace keel
