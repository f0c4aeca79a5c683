// keel certify --mode trained: a bound on one given net, whatever its input.
#pragma once

#include "../nn/safetensors.h"
#include "../ntk/net_bound.h"
#include "certify_search.h"

namespace keel {

struct TrainedChoice {
  std::string net, weights;
  std::vector<std::string> modules;
  bool tail = false;  ///< of a larger net: anything may stand before it
  std::string data, target, standardise;
  std::vector<std::string> ignore{};
  SearchChoice search;
  std::int64_t pieces = NetBoundOptions{}.pieces, member = -1;
  std::optional<std::int64_t> boxes{};
};

/// Throws UsageError where `app` was given an option that only kernels have, or lacks one that this
/// mode needs.
void check_trained(const CLI::App& app);

/// `file` is what was read from choice.weights.
int run_trained(const SafeTensors& file, const TrainedChoice& choice, Context& context);

}  // namespace keel
