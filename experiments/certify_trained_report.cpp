#include "certify_trained_report.h"

#include <algorithm>
#include <cmath>

#include "../ntk/tail_sum.h"
#include "certify_rows.h"
#include "standardiser.h"
#include "text_table.h"

namespace keel {
namespace {

Json interval_json(const Interval& interval, const Standardiser& units) {
  return {units.y_in_own_units(interval.low), units.y_in_own_units(interval.high)};
}

std::string no_bound(const Spec& spec) {
  return fmt::format("no layernorm, rmsnorm, tanh or sigmoid{}", outside_residuals(spec));
}

std::string bounded_by(const NetBound& bound) {
  return bound.word == 0 ? "within" : name_of(bound.kind);
}

// Where what the word gives stays, of whatever input.
std::string place_of(const NetBound& bound) {
  if (bound.kind == LayerKind::tanh) return "within -1 and 1";
  if (bound.kind == LayerKind::sigmoid) return "within 0 and 1";
  return fmt::format("in a ball of {} dimensions", bound.rank);
}

std::string proof_of(const TrainedFindings& found, const Spec& spec) {
  const NetBound& bound = found.bound;
  if (!bound.bounded) return fmt::format("none: {}", no_bound(spec));
  if (found.nets > 1) return fmt::format("the mean of {} nets' intervals", found.nets);
  if (bound.closed)
    return fmt::format("x in {} boxes, to {:g}% of what f reaches", bound.boxes, 100 * kNearFound);
  const std::string boxes = bound.boxes > 0 ? fmt::format(", {} boxes", bound.boxes) : "";
  if (bound.activations == 0 && !bound.cone && !bound.image) return "linear" + boxes;
  return fmt::format("dual, {} layer{}{}{}{}{}", bound.activations,
                     bound.activations == 1 ? "" : "s", bound.cone ? ", cone" : "",
                     bound.image ? ", image" : "",
                     bound.sets > 1 ? fmt::format(", {} sets", bound.sets) : "", boxes);
}

// Where the usual number of them left much open.
bool more_boxes_may_help(const TrainedFindings& found, const TrainedChoice& choice) {
  constexpr double kMuch = 0.95;  // of half the interval, from its middle
  return found.bound.boxes > 0 && !found.bound.closed && !choice.boxes && found.share.value < kMuch;
}

}  // namespace

// To as many digits as tell its ends apart.
std::string interval_text(const Interval& interval, const Standardiser& units) {
  const double low = units.y_in_own_units(interval.low), high = units.y_in_own_units(interval.high);
  const double size = std::max(std::abs(low), std::abs(high)), width = high - low;
  const int digits =
      width > 0 ? static_cast<int>(std::clamp(4 + std::log10(size / width), 5.0, 15.0)) : 15;
  return fmt::format("[{}, {}]", brief_outward(low, digits, -1), brief_outward(high, digits, 1));
}

NetBound mean_of_bounds(const std::vector<TrainedFindings>& members) {
  NetBound mean = members[0].bound;
  mean.closed = mean.cone = mean.image = false;
  mean.boxes = 0;
  mean.found_at.clear();
  const auto count = static_cast<double>(members.size());
  for (Interval& output : mean.outputs) output = {0, 0};
  for (const TrainedFindings& member : members) {
    mean.boxes += member.bound.boxes;
    mean.bounded = mean.bounded && member.bound.bounded;
    for (std::size_t j = 0; j < mean.outputs.size(); ++j) {
      mean.outputs[j].low += member.bound.outputs[j].low / count;
      mean.outputs[j].high += member.bound.outputs[j].high / count;
    }
  }
  return mean;
}

Interval of_all(const std::vector<Interval>& outputs) {
  Interval all = outputs[0];
  for (const Interval& output : outputs)
    all = {std::min(all.low, output.low), std::max(all.high, output.high)};
  return all;
}

Json findings_json(const TrainedFindings& found, const TrainedChoice& choice, const Spec& spec,
                   const Standardiser& units) {
  const NetBound& bound = found.bound;
  Json json = {{"centre", units.y_mean()},
               {"bound", found.bound_or_infinity() * units.y_scale()},
               {"bounded", bound.bounded},
               {"interval", nullptr},
               {"proof", proof_of(found, spec)}};
  if (bound.bounded) {
    json["interval"] = interval_json(of_all(bound.outputs), units);
    json["intervals"] = Json::array();
    for (const Interval& output : bound.outputs)
      json["intervals"].push_back(interval_json(output, units));
    json["bounded_by"] = bound.word == 0 && !found.ranges.empty() ? "ranges" : bounded_by(bound);
    json["bounded_by_word"] = bound.word;
    json["bounded_by_width"] = bound.width;
    json["bounded_by_dimension"] = bound.rank;
    json["sets"] = bound.sets;
    json["boxes"] = bound.boxes;
    json["closed"] = bound.closed;
    json["found_over_bound"] =
        bound.largest() > 0 ? found.attack.largest.value / bound.largest() : 1;  // f is 0
    json["found_of_interval"] = found.share.value;
  }
  if (choice.search.within) json["within"] = *choice.search.within;
  if (!found.ranges.empty()) json["ranges"] = ranges_json(choice, found.ranges, units);
  json["bound_seconds"] = found.bound_seconds;
  json["data_fit_r2"] = found.r2;
  if (std::isfinite(found.held_out_r2)) json["held_out_r2"] = found.held_out_r2;
  if (std::isfinite(found.farthest_row)) json["farthest_row"] = found.farthest_row;
  json.update(
      attack_json(found.attack, units,
                  found.ranges.empty() ? choice.search.region() : farthest_of(found.ranges)));
  return json;
}

std::string findings_text(const TrainedFindings& found, const TrainedChoice& choice,
                          const Spec& spec, const Standardiser& units) {
  constexpr std::size_t kShown = 8;  // outputs
  const NetBound& bound = found.bound;
  const Found& largest = found.attack.largest;
  std::vector<std::vector<std::string>> table;
  const std::string proved = "proved" + within_text(choice.search, units) + ": ";
  if (std::isfinite(found.r2)) {
    const bool held_out = std::isfinite(found.held_out_r2);
    if (held_out) table.push_back({"R^2 on the rows held out", brief(found.held_out_r2, 5)});
    table.push_back({held_out ? "R^2 on the other rows of --data" : "R^2 on the rows of --data",
                     brief(found.r2, 5)});
    table.push_back(
        {units.moves_x() ? "  whose |x|, standardised, is at most" : "  whose |x| is at most",
         brief_outward(found.farthest_row, 3, 1)});
  }
  for (std::size_t i = 0; i < std::min(bound.outputs.size(), kShown); ++i)
    table.push_back({bound.outputs.size() == 1
                         ? proved + "f(x) is never outside"
                         : proved + fmt::format("output {} is never outside", i),
                     interval_text(bound.outputs[i], units)});
  if (bound.bounded)
    table.push_back({proved + about_text(units) + " is at most",
                     brief_outward(bound.largest() * units.y_scale(), 5, 1)});
  else
    table.push_back({"bound of " + about_text(units), proof_of(found, spec)});
  table.push_back({found.ranges.empty()
                       ? fmt::format("largest found for |x| <= {:g}{}", choice.search.region(),
                                     units.moves_x() ? ", standardised" : "")
                       : "largest found in these ranges",
                   brief(largest.value * units.y_scale(), 5)});
  table.push_back({"  at |x|", brief(largest.distance(), 5)});
  if (bound.bounded && bound.largest() > 0)
    table.push_back({"  of the bound", brief(largest.value / bound.largest(), 3)});
  if (bound.bounded)
    table.push_back({"  of half the interval, from its middle", brief(found.share.value, 3)});
  std::string text = text_table(table, 1);
  if (bound.outputs.size() > kShown)
    text += fmt::format("{} outputs in all: summary.json has them\n", bound.outputs.size());
  if (bound.bounded && bound.word == 0)
    text += fmt::format("from x itself on, of {} feature{}; {}\n", bound.width,
                        bound.width == 1 ? "" : "s", proof_of(found, spec));
  else if (bound.bounded)
    text += fmt::format("by the {} at word {}: its {} units stay {}; {}\n", name_of(bound.kind),
                        bound.word, bound.width, place_of(bound), proof_of(found, spec));
  else if (!found.attack.beyond)
    text += fmt::format("{}: nothing is proved, but for a region (--within, --ranges)\n",
                        no_bound(spec));
  if (more_boxes_may_help(found, choice))
    text +=
        "more boxes may bring it nearer to what was found: --boxes 800000, some minutes; Ctrl-C "
        "ends them there\n";
  if (!found.ranges.empty())
    text += fmt::format(
        "ranges: those of the columns of {}{}\n", choice.search.ranges,
        choice.search.widen == 1 ? "" : fmt::format(", {:g} times as wide", choice.search.widen));
  if (choice.tail)
    text += fmt::format(
        "x is what enters '{}', whatever makes it: the whole net may not come to what was found\n",
        choice.modules.front());
  return text + exceed_line(found.attack, units);
}

std::string members_text(const std::vector<TrainedFindings>& members, const TrainedFindings& mean,
                         const Standardiser& units) {
  const double scale = units.y_scale();
  const std::string about = about_text(units);
  std::vector<std::vector<std::string>> table = {
      {"net", "proved: f(x) is in", about + " at most", "largest found", "R^2"}};
  const auto add = [&](const std::string& name, const TrainedFindings& found) {
    const NetBound& bound = found.bound;
    table.push_back({name, bound.bounded ? interval_text(of_all(bound.outputs), units) : "none",
                     bound.bounded ? brief_outward(bound.largest() * scale, 5, 1) : "none",
                     brief(found.attack.largest.value * scale, 5), brief(found.r2, 5)});
    if (!std::isfinite(mean.r2)) table.back().pop_back();
  };
  if (!std::isfinite(mean.r2)) table.back().pop_back();
  for (std::size_t s = 0; s < members.size(); ++s) add(std::to_string(s), members[s]);
  add("mean", mean);
  return text_table(table, 1);
}

}  // namespace keel
