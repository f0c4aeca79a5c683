#include "sequence_report.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "text_table.h"

namespace keel {
namespace {

// The hull of all members' intervals; none where nothing is proved.
std::optional<Interval> hull_of(const std::vector<SequenceBound>& members) {
  std::optional<Interval> all = members[0].proved;
  for (const SequenceBound& member : members)
    if (all)
      all = {std::min(all->low, member.proved->low), std::max(all->high, member.proved->high)};
  return all;
}

}  // namespace

TextRows add_bounds(Json& numbers, const std::vector<SequenceBound>& of_members,
                    const std::vector<std::uint64_t>& seeds, const SequenceUnits& units) {
  const auto [centre, scale] = units;
  const std::string about = text_about("f", centre);
  const auto place_json = [&](std::size_t member, const Found& found) {
    return Json{{"seed", seeds[member]}, {"sequence", units.own(found.x)}};
  };
  TextRows table;
  const std::optional<Interval> all = hull_of(of_members);
  numbers.update({{"centre", centre}, {"bounded", all.has_value()}});
  numbers["bound"] = nullptr;
  numbers["interval"] = nullptr;
  if (all) {
    const double bound = std::max(-all->low, all->high) * scale;
    const double low = units.own(all->low), high = units.own(all->high);
    check(std::isfinite(bound) && std::isfinite(low) && std::isfinite(high), "transformer",
          "got a bound of {} deviations of {} about {}, wanted one within the number range",
          bound / scale, scale, centre);
    numbers["bound"] = bound;
    numbers["interval"] = Json::array({low, high});
    for (const SequenceBound& member : of_members)
      numbers["interval_by_seed"].push_back(
          Json::array({units.own(member.proved->low), units.own(member.proved->high)}));
    table.push_back(
        {"proved: whatever the sequence, no prediction is outside",
         fmt::format("[{}, {}]", brief_outward(low, 5, -1), brief_outward(high, 5, 1))});
    table.push_back({"proved: " + about + " is at most", brief_outward(bound, 5, 1)});
  } else {
    table.push_back({"bound of " + about, "none: no norm that nothing passes by"});
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
  add_fit_rows(table, name, fit, wanted.size(), several);
  return fit;
}

void note_another_series(const Fit& one_step, const Context& context) {
  if (one_step.mean_r2 < 0)
    context.note(
        "note: R^2 is below 0: the nets may have been trained on another series than --target");
}

}  // namespace keel
