// keel certify: a bound on every prediction of a kernel regression, and a search that tries to
// break it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>

#include "../ntk/certificate.h"
#include "output.h"
#include "progress_bar.h"
#include "regression_task.h"
#include "statistics.h"
#include "text_table.h"

namespace keel {
namespace {

struct Choice {
  RegressionChoice regression;
  double farthest = 1e6;
  std::int64_t directions = 256, steps = 40;
  std::optional<double> exceed;
};

constexpr std::int64_t kStarts = 32;  // training rows whose directions are tried
constexpr std::int64_t kEstimateRows =
    4096;  // beyond, the smallest eigenvalue costs too many solves

SearchOptions search_options(const Choice& choice, const Context& context) {
  SearchOptions options;
  options.nearest = std::min(options.nearest, choice.farthest);
  options.farthest = choice.farthest;
  options.directions = choice.directions;
  options.steps = choice.steps;
  options.seed = context.options.seed;
  return options;
}

// Training rows, evenly spread over the table.
Tensor starts(const Tensor& x) {
  const std::int64_t rows = x.size(0), count = std::min(rows, kStarts);
  const Tensor some = Tensor::empty({count, x.size(1)}, DType::f64);
  for (std::int64_t i = 0; i < count; ++i)
    copy(some.slice(i, i + 1), x.slice(i * rows / count, i * rows / count + 1));
  return some;
}

// C: proved for an infinitely wide net; for a net of finite width the largest that a search finds
// within |x| <= farthest.
struct KernelSupremum {
  Supremum proved;
  bool searched = false;
  double value() const {
    return proved.bounded ? proved.value : std::numeric_limits<double>::infinity();
  }
};

KernelSupremum supremum_of(const RegressionTask& task, const Tensor& some,
                           const SearchOptions& options) {
  if (const auto* infinite = dynamic_cast<const InfiniteKernel*>(task.kernel().get()))
    return {infinite->supremum()};
  const Found found =
      search_largest(kernel_diagonal(*task.kernel()), task.training().features, some, options);
  KernelSupremum result;
  result.searched = true;
  result.proved.bounded = true;
  result.proved.value = found.value;
  result.proved.at = found.distance();
  return result;
}

// What the search found, and where the prediction passes what was asked for.
struct Attack {
  Found largest;
  std::optional<Found> beyond;
  double wanted = 0;
};

Attack attack(const Choice& choice, const RegressionTask& task, const Regression& regression,
              const Tensor& some, const SearchOptions& options, bool bounded) {
  const RowFunction size = prediction_size(regression);
  Attack result;
  result.largest = search_largest(size, task.training().features, some, options);
  if (bounded && !choice.exceed) return result;
  // In standardised units, as f is; by default a thousand times what was found.
  result.wanted =
      choice.exceed ? *choice.exceed / task.standardiser().y_scale() : 1000 * result.largest.value;
  if (result.largest.distance() > 0) result.beyond = exceed(size, result.largest.x, result.wanted);
  return result;
}

Json place_json(const Standardiser& standardiser, const Found& found) {
  return {{"x", standardiser.x_in_own_units(found.x)},
          {"x_standardised", found.x},
          {"distance", found.distance()}};
}

/// All that the command says; f in standardised units.
struct Findings {
  double r2 = 0;  // on the training rows
  KernelSupremum supremum;
  Certificate certificate;
  Attack attack;
};

Findings examine(const Choice& choice, const RegressionTask& task, const Regression& regression,
                 const Context& context) {
  const SearchOptions options = search_options(choice, context);
  const Tensor inputs = task.inputs(task.training());
  const Tensor some = starts(inputs.to(Device::cpu()));
  StatusLine status(context.shows_progress());
  Findings found;
  status.show("largest Theta(x, x) ...");
  found.supremum = supremum_of(task, some, options);
  found.certificate =
      certify(regression, found.supremum.value(), 0, task.training().rows <= kEstimateRows);
  status.show("searching for the largest |f(x)| ...");
  found.attack = attack(choice, task, regression, some, options, found.certificate.bounded());
  found.r2 =
      r_squared(task.standardiser().y_in_own_units(regression.predict(inputs).to_vector<double>()),
                task.training().y);
  return found;
}

Json findings_json(const Findings& found, const Standardiser& units, double farthest) {
  const Certificate& certificate = found.certificate;
  const Attack& attack = found.attack;
  const double scale = units.y_scale();
  Json json = {
      {"centre", units.y_mean()},
      {"bound", certificate.bound * scale},
      {"bound_tight", certificate.tight * scale},
      {"bound_loose", certificate.loose * scale},
      {"bounded", certificate.bounded()},
      {"supremum", found.supremum.value()},
      {"supremum_kind", found.supremum.searched ? "largest found in the region" : "proved"},
      {"supremum_at", found.supremum.proved.at},
      {"growth_exponent", found.supremum.proved.growth},
      {"data_fit", certificate.data_fit},
      {"smallest_eigenvalue", certificate.smallest_eigenvalue},
      {"data_fit_r2", found.r2},
      {"largest_found", attack.largest.value * scale},
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

std::string findings_text(const Findings& found, const Standardiser& units, double farthest) {
  const Certificate& certificate = found.certificate;
  const Attack& attack = found.attack;
  const double scale = units.y_scale();
  const std::string about =
      units.y_mean() == 0 ? "|f(x)|" : fmt::format("|f(x) - {}|", brief(units.y_mean(), 4));
  std::vector<std::vector<std::string>> table;
  const auto row = [&](const std::string& what, double value) {
    table.push_back({what, std::isfinite(value) ? brief(value, 5) : "unbounded"});
  };
  row("R^2 on the training rows", found.r2);
  row(found.supremum.searched ? fmt::format("largest Theta(x, x) found for |x| <= {:g}", farthest)
                              : "largest Theta(x, x) over all x",
      found.supremum.value());
  row("certificate: " + about + " is at most", certificate.bound * scale);
  row("  without what the ridge leaves unexplained", certificate.tight * scale);
  row("  in the paper's loose form", certificate.loose * scale);
  row(fmt::format("largest found for |x| <= {:g}", farthest), attack.largest.value * scale);
  row("  at |x|", attack.largest.distance());
  std::string text = text_table(table, 1);
  if (found.supremum.searched)
    text +=
        "a net of finite width: the bound holds where Theta(x, x) is no larger than the largest "
        "found\n";
  if (attack.beyond)
    text +=
        fmt::format("passes {} at |x| = {}: {}\n", brief(attack.wanted * scale, 4),
                    brief(attack.beyond->distance(), 4), brief(attack.beyond->value * scale, 4));
  else if (attack.wanted > 0)
    text += fmt::format("never passes {} along the direction of the largest found\n",
                        brief(attack.wanted * scale, 4));
  return text;
}

int run_certify(const Choice& choice, Context& context) {
  const OutputFolder folder(context.options.out.empty() ? "out/certify" : context.options.out);
  const RegressionTask task(choice.regression, context);
  const Regression regression = task.solve();
  const Findings found = examine(choice, task, regression, context);

  Json numbers = regression_json(choice.regression, task, regression, context);
  numbers.update(findings_json(found, task.standardiser(), choice.farthest));
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << findings_text(found, task.standardiser(), choice.farthest)
                << solver_line(regression);
  return 0;
}

}  // namespace

Run declare_certify(CLI::App& app) {
  const auto choice = std::make_shared<Choice>();
  declare_regression(app, choice->regression);
  app.add_option("--farthest", choice->farthest, "how far out the search goes: |x|, standardised")
      ->check(check_positive)
      ->capture_default_str();
  app.add_option("--directions", choice->directions, "random directions that the search tries")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--steps", choice->steps, "of gradient ascent, from the best points found")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--exceed", choice->exceed,
                 "go on along the best direction until |f| passes this (default, where there is no "
                 "bound: 1000 times the largest found)")
      ->check(check_positive);
  app.footer(
      "The certificate bounds the mean prediction at every input, however far from the data; "
      "without a Layer Norm there is none.\nBounds are about `centre`, which is the mean of y for "
      "--standardise xy and 0 otherwise. Writes summary.json into --out (default out/certify).");
  return [choice](Context& context) { return run_certify(*choice, context); };
}

}  // namespace keel
