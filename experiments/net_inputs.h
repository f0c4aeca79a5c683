// Inputs of the nets of a weights file, as keel train wrote it: features by the names that it has
// of them, in the units of its training.
#pragma once

#include <string>
#include <vector>

#include "../nn/safetensors.h"
#include "command.h"
#include "examples.h"
#include "feature_names.h"
#include "standardiser.h"

namespace keel {

/// An array in a .npy file, [n, features] or, of one feature, [n]; no y. Throws ShapeError for
/// another, with the command's name.
Examples array_inputs(const std::string& path, const char* command);

/// The rows of a table, with y where `target` is not "". By the names that are `known` of its
/// features, where the table has a header without repetitions, and then all other columns may hold
/// anything; else in the table's order, with a note as NamedFeatures::order_note(). Throws
/// DataError.
Examples table_inputs(const std::string& path, const std::string& target,
                      const IgnoredColumns& ignored, const FeatureNames& known,
                      const Context& context);

/// What the file's metadata has for `key`; "" for nothing.
std::string metadata_of(const SafeTensors& file, const char* key);

/// What the file calls its nets' features; nothing where it does not. Throws DataError where that
/// is no list of names.
std::vector<std::string> names_of_features(const SafeTensors& file, const std::string& weights);

/// --standardise of the training of `file`'s nets; "" where it does not say, as of another library.
std::string standardise_of(const SafeTensors& file);

/// What --standardise comes to: `given` or, where it is "", standardise_of(), or `otherwise`.
std::string standardise_by(const std::string& given, const SafeTensors& file,
                           const char* otherwise);

/// The units of that training, of nets that take `features` features; those x has where there are
/// none. Throws keel::Error where the file says that there are and not which, and ShapeError where
/// they are of another number of features.
Standardiser units_of_weights(const SafeTensors& file, const std::string& weights,
                              std::int64_t features);

}  // namespace keel
