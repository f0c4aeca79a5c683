#include "sequence_bound.h"

#include <algorithm>
#include <cmath>

#include "../core/max_or_nan.h"
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

SequenceUnits units_of_file(const SafeTensors& file, const std::string& path,
                            const Context& context) {
  const auto number_of = [&](const char* key) -> std::optional<double> {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) return {};
    const Json number = Json::parse(found->second, nullptr, false);
    check(number.is_number(), "transformer", "{}: got '{}' for {}, wanted a number", path,
          shown(found->second), key);
    return number.get<double>();
  };
  const std::optional<double> centre = number_of(kCentreKey), scale = number_of(kScaleKey);
  check(centre.has_value() == scale.has_value(), "transformer",
        "{}: got {} alone of {} and {}, wanted both or none", path, centre ? kCentreKey : kScaleKey,
        kCentreKey, kScaleKey);
  if (!scale) {
    context.note(fmt::format("note: {} names no {} and {}: these are the nets' own units", path,
                             kCentreKey, kScaleKey));
    return {};
  }
  check(*scale > 0 && std::isnormal(*scale), "transformer", "{}: got {} for {}, wanted more than 0",
        path, *scale, kScaleKey);
  return {*centre, *scale};
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
      keel::attack(wanted, largest_prediction(precise), starts, options, result.proved.has_value());
  if (!result.proved) return result;
  const double bound = std::max(-result.proved->low, result.proved->high);
  const Attack& attack = result.attack;
  for (const double found : {attack.largest.value, attack.beyond ? attack.beyond->value : 0.0})
    check(found <= bound * (1 + 1e-6), who,
          "found |f| = {} of seed {}, in units of the deviation, more than the {} that was proved: "
          "keel is wrong, or its evaluation rounds this net's biases away",
          found, net.options().seeds[0], bound);
  return result;
}

TextRows add_bounds(Json& numbers, const std::vector<SequenceBound>& of_members,
                    const std::vector<std::uint64_t>& seeds, const SequenceUnits& units) {
  const auto [centre, scale] = units;
  const std::string about = centre == 0 ? "|f|" : fmt::format("|f - {}|", brief(centre, 6));
  const auto in_own_units = [&units](const std::vector<double>& values) {
    std::vector<double> own;
    for (double value : values) own.push_back(value * units.scale + units.centre);
    return own;
  };
  const auto place_json = [&](std::size_t member, const Found& found) {
    return Json{{"seed", seeds[member]}, {"sequence", in_own_units(found.x)}};
  };
  TextRows table;
  const std::optional<Interval> all = hull_of(of_members);
  numbers.update({{"centre", centre}, {"bounded", all.has_value()}});
  numbers["bound"] = nullptr;
  numbers["interval"] = nullptr;
  if (all) {
    const double bound = std::max(-all->low, all->high) * scale;
    const std::vector<double> own = in_own_units({all->low, all->high});
    check(std::isfinite(bound) && std::isfinite(own[0]) && std::isfinite(own[1]), "transformer",
          "got a bound of {} deviations of {} about {}, wanted one within the number range",
          bound / scale, scale, centre);
    numbers["bound"] = bound;
    numbers["interval"] = own;
    for (const SequenceBound& member : of_members)
      numbers["interval_by_seed"].push_back(
          in_own_units({member.proved->low, member.proved->high}));
    table.push_back(
        {"proved: whatever the sequence, no prediction is outside",
         fmt::format("[{}, {}]", brief_outward(own[0], 5, -1), brief_outward(own[1], 5, 1))});
    table.push_back({"proved: " + about + " is at most", brief_outward(bound, 5, 1)});
  } else {
    table.push_back({"bound of " + about, "none: no Layer Norm"});
  }
  std::size_t most = 0;
  std::optional<std::size_t> farthest;  // of those that passed what was to be passed
  std::int64_t evaluations = 0;
  for (std::size_t s = 0; s < of_members.size(); ++s) {
    const Attack& attack = of_members[s].attack;
    evaluations += attack.largest.evaluations;
    if (attack.largest.value > of_members[most].attack.largest.value) most = s;
    if (attack.beyond &&
        (!farthest || attack.beyond->value > of_members[*farthest].attack.beyond->value))
      farthest = s;
  }
  const Attack& attack = of_members[farthest.value_or(most)].attack;
  const Found& largest = of_members[most].attack.largest;
  numbers["largest_found"] = largest.value * scale;
  numbers["largest_found_at"] = place_json(most, largest);
  numbers["evaluations"] = evaluations;
  table.push_back({"largest " + about + " found", brief(largest.value * scale, 5)});
  if (attack.wanted > 0) numbers["exceed"] = attack.wanted * scale;
  if (farthest) {
    const double beyond = attack.beyond->value * scale;
    numbers["exceeded_by"] = beyond;
    numbers["exceeded_at"] = place_json(*farthest, *attack.beyond);
    table.push_back({fmt::format("passes {}", brief(attack.wanted * scale, 5)),
                     brief(beyond, 5) + " (summary.json)"});
  } else if (attack.wanted > 0) {
    table.push_back({fmt::format("passes {}", brief(attack.wanted * scale, 5)),
                     "not in the direction of that"});
  }
  return table;
}

Fit add_sequence_fit(Json& numbers, TextRows& table, const char* name, const MemberRows& predicted,
                     const std::vector<double>& wanted) {
  const Fit fit = fit_of(predicted, wanted);
  const bool several = predicted.size() > 1;
  numbers[name] = {{"rmse", fit.rmse.mean}, {"r2", fit.r2.mean}};
  if (several)
    numbers[name].update({{"rmse_ci", fit.rmse.half_width},
                          {"r2_ci", fit.r2.half_width},
                          {"rmse_of_mean", fit.mean_rmse},
                          {"r2_of_mean", fit.mean_r2}});
  table.push_back({name, std::to_string(wanted.size()),
                   brief(fit.rmse.mean, fit.rmse.half_width, 4),
                   brief(fit.r2.mean, fit.r2.half_width, 4)});
  if (several)
    table.push_back({"  mean prediction", "", brief(fit.mean_rmse, 4), brief(fit.mean_r2, 4)});
  return fit;
}

}  // namespace keel
