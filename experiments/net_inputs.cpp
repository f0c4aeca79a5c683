#include "net_inputs.h"

#include "npy.h"

namespace keel {

std::string metadata_of(const SafeTensors& file, const char* key) {
  const auto written = file.metadata.find(key);
  return written == file.metadata.end() ? "" : written->second;
}

Examples array_inputs(const std::string& path, const char* command) {
  Tensor x = read_npy(path);
  if (x.rank() == 1) x = x.reshape({x.size(0), 1});
  check<ShapeError>(x.rank() == 2 && x.size(1) >= 1, command, "{} holds {}, wanted [n, features]",
                    path, x.shape());
  Examples examples;
  examples.rows = x.size(0);
  examples.features = x.size(1);
  examples.x = x.to_vector<double>();
  return examples;
}

Examples table_inputs(const std::string& path, const std::string& target,
                      const IgnoredColumns& ignored, const FeatureNames& known,
                      const Context& context) {
  const NamedFeatures named(known, target);
  const Table table = read_table(path, 1, named.ignored(ignored));
  if (!named.apply_to(table)) {
    context.note(named.order_note(table));
    return target.empty() ? without_target(table) : training_examples(table, target);
  }
  Examples examples = named.examples(table);
  if (const std::string others = named.others(table); !others.empty())
    context.note(
        fmt::format("note: {}: no features of {}, and left out: {}", path, known.file, others));
  return examples;
}

std::vector<std::string> names_of_features(const SafeTensors& file, const std::string& weights) {
  return names_of_features(metadata_of(file, kFeaturesKey), weights);
}

std::string standardise_of(const SafeTensors& file) { return metadata_of(file, kStandardiseKey); }

std::string standardise_by(const std::string& given, const SafeTensors& file,
                           const char* otherwise) {
  if (!given.empty()) return given;
  const std::string own = standardise_of(file);
  return own.empty() ? otherwise : own;
}

Standardiser units_of_weights(const SafeTensors& file, const std::string& weights,
                              std::int64_t features) {
  const std::string standardise = standardise_of(file), columns = metadata_of(file, kColumnsKey);
  if (standardise.empty() || standardise == "none") return Standardiser::none(features);
  check(!columns.empty(), "weights",
        "{} is of a net that keel trained with --standardise {} and does not say by what: wanted "
        "{} in its metadata",
        weights, shown(standardise), kColumnsKey);
  return Standardiser::of_columns(columns, weights, features);
}

}  // namespace keel
