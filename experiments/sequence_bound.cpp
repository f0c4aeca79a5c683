#include "sequence_bound.h"

#include <algorithm>
#include <cmath>

#include "../core/max_or_nan.h"
#include "../ntk/transformer_bound.h"

namespace keel {
namespace {

// |f| at the place where it is largest, for each sequence of x [m, length].
RowFunction largest_prediction(const Transformer& net) {
  return [&net](const Tensor& x) {
    const auto length = static_cast<std::size_t>(net.options().length);
    const std::vector<double> all = predict_in_blocks(net, x.to_vector<double>());
    std::vector<double> sizes;
    for (std::size_t at = 0; at < all.size(); at += length) {
      double largest = 0;
      for (std::size_t t = 0; t < length; ++t) largest = max_or_nan(largest, std::abs(all[at + t]));
      sizes.push_back(largest);
    }
    return sizes;
  };
}

}  // namespace

SearchOptions sequence_search(std::int64_t length, std::uint64_t seed) {
  const double share = std::min(29.0 / static_cast<double>(length), 1.0);
  SearchOptions options;
  options.directions = kSequenceDirections;
  options.radii = std::max<std::int64_t>(std::llround(17 * share), 2);
  options.climbers = 4;
  options.steps = std::llround(kSequenceSteps * share * share);
  options.seed = seed;
  return options;
}

Tensor spread_windows(const std::vector<double>& values, std::int64_t length) {
  constexpr std::int64_t kMost = 32;
  const std::int64_t windows = std::ssize(values) - length, count = std::min(windows, kMost);
  if (count < 1) return Tensor::zeros({1, length}, DType::f64);
  std::vector<double> some;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = values.begin() + i * windows / count;
    some.insert(some.end(), from, from + length);
  }
  return Tensor::from(some, {count, length});
}

SequenceBound bound_and_search(const Transformer& net, const Tensor& starts,
                               const SearchOptions& options, std::optional<double> wanted,
                               const char* who) {
  SequenceBound result;
  if (net.options().norms.bound_all()) result.proved = bound_transformer(net);
  const Transformer precise = net.to(DType::f64);
  result.attack =
      attack(wanted, largest_prediction(precise), starts, options, result.proved.has_value());
  if (!result.proved) return result;
  const double bound = std::max(-result.proved->low, result.proved->high);
  const std::optional<Found>& beyond = result.attack.beyond;
  for (const double found : {result.attack.largest.value, beyond ? beyond->value : 0.0})
    check(found <= kKept * bound, who,
          "found |f| = {} of seed {}, in units of the deviation, more than the {} that was proved: "
          "keel is wrong, or its evaluation rounds this net's biases away",
          found, net.options().seeds[0], bound);
  return result;
}

}  // namespace keel
