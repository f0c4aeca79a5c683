// keel certify --mode trained of a transformer's file: a bound on every prediction, whatever the
// sequence.
#pragma once

#include <string>

#include "../nn/safetensors.h"
#include "certify_search.h"

namespace keel {

struct TransformerChoice {
  std::string weights;       ///< a file of save_transformer()
  std::string data, target;  ///< a series to judge it by and to search from, or ""
  std::int64_t member = -1;  ///< the only net of the file's to be looked at; -1: each
  SearchChoice search;
};

/// Throws UsageError where `app` was given an option that only nets of a SPEC have.
void check_transformer(const CLI::App& app);

/// `file` is what choice.weights holds.
int run_transformer(const SafeTensors& file, const TransformerChoice& choice, Context& context);

}  // namespace keel
