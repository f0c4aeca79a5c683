#include "certify_search.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "text_table.h"

namespace keel {
namespace {

constexpr std::int64_t kStarts = 32;  // training rows whose directions are tried

Json place_json(const Standardiser& units, const Found& found) {
  return {{"x", units.x_in_own_units(found.x)},
          {"x_standardised", found.x},
          {"distance", found.distance()}};
}

}  // namespace

void declare_search(CLI::App& app, SearchChoice& choice) {
  const auto check_reached = [](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) <= kFarthestExceed
               ? ""
               : fmt::format("got '{}', wanted at most {:g}", text, kFarthestExceed);
  };
  app.add_option("--within", choice.within,
                 "prove, and search, of inputs with |x|, standardised, up to this alone: it has a "
                 "bound without a norm, too")
      ->check(check_positive)
      ->check(check_reached);
  app.add_option(
      "--ranges", choice.ranges,
      "of --mode trained: prove, and search, of inputs alone whose features stay between "
      "the least and the largest in this table's columns");
  app.add_option("--widen", choice.widen,
                 "how many times as wide as those --ranges are meant to be, about their middles")
      ->check(check_positive)
      ->check(check_reached)
      ->capture_default_str();
  app.add_option("--farthest", choice.farthest, "how far out the search goes: |x|, standardised")
      ->check(check_positive)
      ->check(check_reached)
      ->capture_default_str();
  app.add_option("--directions", choice.directions,
                 fmt::format("random directions that the search tries (default: {}, of a "
                             "transformer {})",
                             SearchOptions{}.directions, kSequenceDirections))
      ->check(check_whole(0, 1000000));
  app.add_option("--steps", choice.steps,
                 fmt::format("of gradient ascent, from the best points found (default: {} for a "
                             "kernel, {} for --mode trained, of a transformer {} at most)",
                             kKernelSteps, kNetSteps, kSequenceSteps))
      ->check(check_whole(0, 100000));
  app.add_option("--exceed", choice.exceed,
                 "go on along the best direction until |f| passes this (default, where there is no "
                 "bound: 1000 times the largest found)")
      ->check(check_positive);
}

void check_region(const CLI::App& app) {
  if (app.count("--widen") > 0 && app.count("--ranges") == 0)
    throw UsageError("usage", "got --widen, wanted --ranges TABLE with it: what is widened");
  for (const char* region : {"--within", "--ranges"})
    for (const char* name : {"--farthest", "--exceed", "--within"})
      if (app.count(region) > 0 && app.count(name) > 0 && std::string(region) != name)
        throw UsageError("usage", fmt::format("got {} and {}, wanted one of them: nothing beyond "
                                              "{} is looked at",
                                              region, name, region));
}

std::string within_text(const SearchChoice& choice, const Standardiser& units) {
  if (!choice.ranges.empty()) return " in these ranges";
  if (!choice.within) return "";
  return fmt::format(" for |x| <= {:g}{}", *choice.within, units.moves_x() ? ", standardised" : "");
}

SearchOptions search_options(const SearchChoice& choice, SearchOptions usual) {
  constexpr double kSpan = 1e-3;  // of the region, at the least
  usual.nearest = std::min(usual.nearest, kSpan * choice.region());
  usual.farthest = choice.region();
  usual.directions = choice.directions.value_or(usual.directions);
  usual.steps = choice.steps.value_or(usual.steps);
  return usual;
}

Tensor search_starts(const Tensor& x) {
  const std::int64_t rows = x.size(0), count = std::min(rows, kStarts);
  const Tensor some = Tensor::empty({count, x.size(1)}, DType::f64);
  for (std::int64_t i = 0; i < count; ++i)
    copy(some.slice(i, i + 1), x.slice(i * rows / count, i * rows / count + 1));
  return some;
}

Attack attack(std::optional<double> wanted, const RowFunction& size, const Tensor& starts,
              const SearchOptions& options, bool bounded, const RowGradient& gradient) {
  Attack result;
  result.largest = search_largest(size, starts.size(1), starts, options, gradient);
  if (bounded && !wanted) return result;
  result.wanted = wanted.value_or(1000 * result.largest.value);
  if (result.largest.distance() > 0) result.beyond = exceed(size, result.largest.x, result.wanted);
  return result;
}

Json attack_json(const Attack& attack, const Standardiser& units, double farthest) {
  const double scale = units.y_scale();
  Json json = {{"largest_found", attack.largest.value * scale},
               {"largest_found_at", place_json(units, attack.largest)},
               {"region", farthest},
               {"evaluations", attack.largest.evaluations}};
  if (attack.wanted > 0) json["exceed"] = attack.wanted * scale;
  if (attack.beyond) {
    json["exceeded_by"] = attack.beyond->value * scale;
    json["exceeded_at"] = place_json(units, *attack.beyond);
  }
  return json;
}

std::string exceed_line(const Attack& attack, const Standardiser& units) {
  const double scale = units.y_scale();
  if (attack.beyond)
    return fmt::format("passes {} at |x| = {}: {} (summary.json has x)\n",
                       brief(attack.wanted * scale, 4), brief(attack.beyond->distance(), 4),
                       brief(attack.beyond->value * scale, 4));
  if (attack.wanted > 0)
    return fmt::format(
        "does not pass {} along the direction of the largest found from |x| = {:g} to {:g}, or "
        "before it overflows\n",
        brief(attack.wanted * scale, 4), 1 / kFarthestExceed, kFarthestExceed);
  return "";
}

void check_kept(double found, double bound, const Standardiser& units) {
  check(!(found > kKept * bound), "certify",
        "found {} = {}, more than the {} that was proved: keel is wrong, or its evaluation rounds "
        "this net's biases away",
        about_text(units), found * units.y_scale(), bound * units.y_scale());
}

int ended(const Interrupt& interrupt, Context& context) {
  if (!raised(interrupt.flag())) return 0;
  context.err << "keel: stopped: what was proved and found until then holds, and is written\n";
  return stopped_code();
}

std::string about_text(const Standardiser& units) { return text_about("f(x)", units.y_mean()); }

}  // namespace keel
