// Transformers to and from .safetensors files.
#pragma once

#include <map>
#include <string>

#include "safetensors.h"
#include "transformer.h"

namespace keel {

/// All parameters, named and shaped as layout() has them, and in the file's metadata what else a
/// transformer is: sizes, where its norms stand and their kind, seeds; and `notes`.
void save_transformer(const Transformer& net, const std::string& path,
                      const std::map<std::string, std::string>& notes = {});

/// Whether that is of a file of save_transformer(), by its metadata.
bool is_transformer(const SafeTensors& file);

/// What save_transformer() wrote, with its dtype. Throws keel::Error with the path and what is
/// wrong: a file that is none, or not of a transformer; a tensor that is missing, has another shape
/// or dtype, is not wanted, or holds a number that is not finite.
Transformer load_transformer(const std::string& path, Device device = {});

/// The same of what has been read from `path`.
Transformer load_transformer(const SafeTensors& file, const std::string& path, Device device = {});

}  // namespace keel
