// Features by their names, which a weights file has of the table that its nets were trained on.
#pragma once

#include <string>
#include <vector>

#include "examples.h"

namespace keel {

/// What `keel train` writes into the metadata of weights where its table has a header and no name
/// twice: "[\"name\", ...]", a name a feature.
inline constexpr const char* kFeaturesKey = "keel.features";

/// That text; "" where names tell nothing.
std::string feature_names(const Examples& examples);

/// Its names; none where it is "". Throws DataError, naming the file `weights`, where it is none of
/// it.
std::vector<std::string> names_of_features(const std::string& text, const std::string& weights);

/// 'a', 'b' ...
std::string quoted_names(const std::vector<std::string>& names);

/// Features by name, and the file that calls them so, for messages; none where it says nothing.
struct FeatureNames {
  std::vector<std::string> names;
  std::string file;
};

/// How a table is read whose features have these names: by them where it has a header without
/// repetitions, so that all others may hold anything; else by place.
class NamedFeatures {
 public:
  /// `target`: a column of the table, or "".
  NamedFeatures(FeatureNames known, std::string target)
      : known_(std::move(known)), target_(std::move(target)) {}

  bool apply_to(const Table& table) const;

  /// Of a table that they apply to what is neither a feature nor the target; else `otherwise`.
  IgnoredColumns ignored(IgnoredColumns otherwise) const;

  /// Of such a table, in their order. Throws DataError that names one that is missing or ignored.
  Examples examples(const Table& table) const;

  /// A line that says so where a table's features are taken in their order though one of both has
  /// names for them; else nothing.
  std::string order_note(const Table& table) const;

  /// The table's other columns, quoted; "" where there are none.
  std::string others(const Table& table) const;

 private:
  bool is_feature(const std::string& name) const;
  std::int64_t target_in(const Table& table) const;  // -1: none
  FeatureNames known_;
  std::string target_;
};

}  // namespace keel
