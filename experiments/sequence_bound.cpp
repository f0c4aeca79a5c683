#include "sequence_bound.h"

#include <algorithm>
#include <cmath>

#include "../core/max_or_nan.h"
#include "../nn/safetensors.h"
#include "../ntk/transformer_bound.h"
#include "text_table.h"

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

// The hull of all members' intervals; none without Layer Norm.
std::optional<Interval> hull_of(const std::vector<SequenceBound>& members) {
  std::optional<Interval> all = members[0].proved;
  for (const SequenceBound& member : members)
    if (all)
      all = {std::min(all->low, member.proved->low), std::max(all->high, member.proved->high)};
  return all;
}

}  // namespace

SequenceUnits units_of_file(const std::string& path, const Context& context) {
  const auto metadata = read_safetensors(path).metadata;
  const auto number_of = [&](const char* key) -> std::optional<double> {
    const auto found = metadata.find(key);
    if (found == metadata.end()) return {};
    const Json number = Json::parse(found->second, nullptr, false);
    check(number.is_number(), "transformer", "{}: got '{}' for {}, wanted a number", path,
          shown(found->second), key);
    return number.get<double>();
  };
  const std::optional<double> centre = number_of(kCentreKey), scale = number_of(kScaleKey);
  check(scale.value_or(1) > 0, "transformer", "{}: got {} for {}, wanted more than 0", path,
        scale.value_or(1), kScaleKey);
  if (!centre || !scale)
    context.note(fmt::format("note: {} names no {} and {}: these are the nets' own units", path,
                             kCentreKey, kScaleKey));
  return {centre.value_or(0), scale.value_or(1)};
}

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
  if (net.options().layer_norm) result.proved = bound_transformer(net);
  const Transformer precise = net.to(DType::f64);
  result.attack =
      attack(wanted, largest_prediction(precise), starts, options, result.proved.has_value());
  if (!result.proved) return result;
  const double bound = std::max(-result.proved->low, result.proved->high);
  check(result.attack.largest.value <= bound * (1 + 1e-6), who,
        "found |f| = {} of seed {}, in units of the deviation, more than the {} that was proved: "
        "keel is wrong",
        result.attack.largest.value, net.options().seeds[0], bound);
  return result;
}

std::vector<std::vector<std::string>> add_bounds(Json& numbers,
                                                 const std::vector<SequenceBound>& of_members,
                                                 const SequenceUnits& units) {
  const auto [centre, scale] = units;
  const std::string about = centre == 0 ? "|f|" : fmt::format("|f - {}|", brief(centre, 6));
  const auto in_own_units = [&units](const std::vector<double>& values) {
    std::vector<double> own;
    for (double value : values) own.push_back(value * units.scale + units.centre);
    return own;
  };
  const auto interval_json = [&](const Interval& interval) {
    return Json(in_own_units({interval.low, interval.high}));
  };
  std::vector<std::vector<std::string>> table;
  const std::optional<Interval> all = hull_of(of_members);
  numbers.update({{"centre", centre}, {"bounded", all.has_value()}});
  numbers["bound"] = nullptr;
  numbers["interval"] = nullptr;
  if (all) {
    const double bound = std::max(-all->low, all->high) * scale;
    const std::vector<double> own = in_own_units({all->low, all->high});
    numbers["bound"] = bound;
    numbers["interval"] = own;
    for (const SequenceBound& member : of_members)
      numbers["interval_by_seed"].push_back(interval_json(*member.proved));
    table.push_back(
        {"proved: whatever the sequence, no prediction is outside",
         fmt::format("[{}, {}]", brief_outward(own[0], 5, -1), brief_outward(own[1], 5, 1))});
    table.push_back({"proved: " + about + " is at most", brief_outward(bound, 5, 1)});
  } else {
    table.push_back({"bound of " + about, "none: no Layer Norm"});
  }
  const Attack& attack = std::max_element(of_members.begin(), of_members.end(),
                                          [](const SequenceBound& a, const SequenceBound& b) {
                                            return a.attack.largest.value < b.attack.largest.value;
                                          })
                             ->attack;
  const double found = attack.largest.value * scale;
  numbers["largest_found"] = found;
  numbers["largest_found_at"] = {{"sequence", in_own_units(attack.largest.x)}};
  numbers["evaluations"] = attack.largest.evaluations;
  if (attack.wanted > 0) numbers["exceed"] = attack.wanted * scale;
  table.push_back({"largest " + about + " found", brief(found, 5)});
  if (attack.beyond) {
    const double beyond = attack.beyond->value * scale;
    numbers["exceeded_by"] = beyond;
    numbers["exceeded_at"] = {{"sequence", in_own_units(attack.beyond->x)}};
    table.push_back({"farther out", brief(beyond, 5) + " (summary.json)"});
  } else if (attack.wanted > 0) {
    table.push_back({"not passed along the direction of that", brief(attack.wanted * scale, 5)});
  }
  return table;
}

}  // namespace keel
