#include "distance.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../core/random.h"
#include "../nn/streams.h"
#include "../nn/trainer.h"
#include "../ntk/interval_ends.h"
#include "../ntk/net_bound.h"
#include "../ntk/search.h"
#include "certify_rows.h"
#include "progress_bar.h"
#include "reproduce.h"
#include "standardiser.h"
#include "statistics.h"
#include "text_table.h"
#include "toy_figure.h"

namespace keel {
namespace {

constexpr std::int64_t kFriedmanFeatures = 5, kDistances = 11;
constexpr std::int64_t kBoxesAnEpoch = 20, kStepsAnEpoch = 20;
constexpr double kNearest = 0.1, kGrowsFrom = 100, kFarthest = 1e4;

Examples friedman_rows(std::int64_t rows) {
  Examples examples;
  examples.rows = rows;
  examples.features = kFriedmanFeatures;
  examples.x =
      uniform({rows, kFriedmanFeatures}, {0, streams::inputs()}, DType::f64).to_vector<double>();
  for (std::int64_t row = 0; row < rows; ++row)
    examples.y.push_back(friedman(&examples.x[static_cast<std::size_t>(row * kFriedmanFeatures)]));
  return examples;
}

// Each kind of step in the same share of its usual number.
NetBoundOptions bound_options(const DistanceOptions& options, double within) {
  NetBoundOptions bound{.within = within, .pieces = 0, .boxes = options.boxes};
  const double share = static_cast<double>(options.steps) / static_cast<double>(bound.steps);
  for (std::int64_t* steps :
       {&bound.steps, &bound.unit_steps, &bound.image_steps, &bound.unit_image_steps})
    *steps = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(*steps)));
  return bound;
}

// The least and the largest f that a search finds.
Interval search_ends(const Net& net, const Tensor& starts, double within,
                     const std::vector<std::vector<double>>& points) {
  Interval found;
  for (const double side : {-1.0, 1.0}) {
    const RowFunction f = [&](const Tensor& x) {
      std::vector<double> values = net.predict(x.to(net.options().device)).to_vector<double>();
      for (double& value : values) value *= side;
      return values;
    };
    const SearchOptions options{.nearest = 1e-3 * within, .farthest = within, .points = points};
    const double most = search_largest(f, net.input_width(), starts, options).value;
    (side > 0 ? found.high : found.low) = side * most;
  }
  return found;
}

// Least-squares slope of the log of an interval's size over that of the distance, far out.
double distance_growth(const DistanceCurve& curve, Interval WithinDistance::*which) {
  std::vector<double> x, y;
  for (const WithinDistance& at : curve.at) {
    if (at.within < kGrowsFrom * (1 - 1e-9)) continue;
    x.push_back(std::log(at.within));
    y.push_back(std::log(most_of(at.*which)));
  }
  return least_squares_slope(x, y);
}

std::string distance_csv(const DistanceRun& run, const std::vector<DistanceNet>& nets) {
  Csv csv({"net", "seed", "within", "proved_low", "proved_high", "found_low", "found_high"});
  for (const DistanceCurve& curve : run.curves)
    for (const WithinDistance& at : curve.at)
      csv.add(nets[curve.net].name)
          .add(std::to_string(curve.seed))
          .add(at.within)
          .add(at.proved.low)
          .add(at.proved.high)
          .add(at.found.low)
          .add(at.found.high)
          .end_row();
  return csv.text();
}

Json distance_json(const DistanceRun& run, const std::vector<DistanceNet>& nets) {
  Json list = Json::array();
  for (const DistanceCurve& curve : run.curves) {
    Json at = Json::array();
    for (const WithinDistance& one : curve.at)
      at.push_back({{"within", one.within},
                    {"proved", {one.proved.low, one.proved.high}},
                    {"found", {one.found.low, one.found.high}}});
    list.push_back({{"net", nets[curve.net].name},
                    {"spec", nets[curve.net].spec},
                    {"seed", curve.seed},
                    {"train_r2", curve.train_r2},
                    {"growth_of_proved", distance_growth(curve, &WithinDistance::proved)},
                    {"growth_of_found", distance_growth(curve, &WithinDistance::found)},
                    {"within", at}});
  }
  return list;
}

std::string distance_text(const DistanceRun& run, const std::vector<DistanceNet>& nets) {
  std::vector<std::vector<std::string>> rows = {
      {"net", "seed", "R^2", "|x| <=", "proved: |f| <=", "found", "grows like |x|^"}};
  for (const DistanceCurve& curve : run.curves)
    for (const WithinDistance& at : curve.at) {
      const bool first = &at == &curve.at.front(), last = &at == &curve.at.back();
      rows.push_back(
          {first ? nets[curve.net].title : "", first ? fmt::format("{}", curve.seed) : "",
           first ? brief(curve.train_r2, 4) : "", brief(at.within, 3),
           brief_outward(most_of(at.proved), 4, 1), brief(most_of(at.found), 4),
           last ? fmt::format("{:.3f}", std::abs(distance_growth(curve, &WithinDistance::proved)))
                : ""});
    }
  return text_table(rows, 2);
}

}  // namespace

double friedman(const double* x) {
  return 10 * std::sin(std::numbers::pi * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) +
         10 * x[3] + 5 * x[4];
}

std::vector<DistanceNet> distance_nets(std::int64_t width) {
  const auto net = [&](const char* name, const char* title, const char* first, const char* second) {
    return DistanceNet{name, title,
                       fmt::format("dense({0}) {1} dense({0}) {2} dense(1)", width, first, second)};
  };
  return {net("standard", "Standard", "relu", "relu"),
          net("ln_first", "LN first", "layernorm relu", "relu"),
          net("ln_second", "LN second", "relu", "layernorm relu"),
          net("tanh", "tanh, no LN", "tanh", "tanh")};
}

DistanceRun run_distance(const DistanceOptions& options) {
  const Examples examples = friedman_rows(options.rows);
  const Standardiser units(Standardise::xy, examples);
  const Tensor x = units.inputs(examples, options.device),
               y = units.targets(examples, options.device),
               starts = search_starts(x.to(Device::cpu()));
  DistanceRun run{longest_row(x), {}};
  NetOptions net_options;
  net_options.device = options.device;
  for (std::int64_t seed = 0; seed < options.seeds; ++seed)
    net_options.seeds.push_back(options.first_seed + static_cast<std::uint64_t>(seed));
  const std::vector<DistanceNet> nets = distance_nets(options.width);
  for (std::size_t n = 0; n < nets.size(); ++n) {
    Net all(nets[n].spec, kFriedmanFeatures, net_options);
    TrainOptions training;
    training.epochs = options.epochs;
    training.optimiser = AdamOptions{1e-3};
    train(all, x.to(DType::f32), y.to(DType::f32), training);
    for (std::int64_t s = 0; s < options.seeds; ++s) {
      const Net net = all.member(s).to(DType::f64);
      DistanceCurve curve{n, net_options.seeds[static_cast<std::size_t>(s)]};
      curve.train_r2 = r_squared(net.predict(x).to_vector<double>(), y.to_vector<double>());
      for (const double within : options.within) {
        const NetBound bound = bound_net(net, bound_options(options, within));
        const Interval proved = bound.outputs[0];
        Interval found = search_ends(net, starts, within, bound.found_at);
        if (!curve.at.empty()) {  // what was found nearer is within this distance, too
          const Interval& nearer = curve.at.back().found;
          found = {std::min(found.low, nearer.low), std::max(found.high, nearer.high)};
        }
        const double slack = (kKept - 1) * most_of(proved);
        check(
            found.low >= proved.low - slack && found.high <= proved.high + slack, "distance",
            "found f from {} to {} for |x| <= {}, wanted it in [{}, {}], which was proved: keel is "
            "wrong",
            found.low, found.high, within, proved.low, proved.high);
        curve.at.push_back({within, proved, found});
        if (options.progress) options.progress();
      }
      for (std::size_t i = curve.at.size(); i > 1; --i)  // what is proved farther out holds nearer
        curve.at[i - 2].proved = common(curve.at[i - 2].proved, curve.at[i - 1].proved);
      run.curves.push_back(std::move(curve));
    }
  }
  return run;
}

Reproduced reproduce_distance(const Context& context, const ReproduceOptions& chosen,
                              const OutputFolder& folder) {
  DistanceOptions options;
  options.seeds = chosen.seeds.value_or(options.seeds);
  options.epochs = chosen.epochs.value_or(options.epochs);
  // A short run is one to look at: bounds are as quick.
  options.boxes = std::min(options.boxes, kBoxesAnEpoch * options.epochs);
  options.steps = std::min(options.steps, kStepsAnEpoch * options.epochs);
  options.within = log_spaced(kNearest, kFarthest, kDistances);
  options.first_seed = context.options.seed;
  options.device = context.device;
  const std::vector<DistanceNet> nets = distance_nets(options.width);
  ProgressBar bar("distance", std::ssize(nets) * options.seeds * kDistances,
                  context.shows_progress());
  std::int64_t done = 0;
  bar.update(done);
  options.progress = [&] { bar.update(++done); };
  const DistanceRun run = run_distance(options);
  folder.write("curves.csv", distance_csv(run, nets));
  Reproduced result;
  result.numbers = {{"figure", "distance"},
                    {"data", "Friedman's first function, uniform on [0, 1]^5, without noise"},
                    {"train_rows", options.rows},
                    {"farthest_row", run.farthest_row},
                    {"seeds", options.seeds},
                    {"first_seed", options.first_seed},
                    {"epochs", options.epochs},
                    {"curves", distance_json(run, nets)}};
  result.table = fmt::format(
      "distance: |x| and |f| in deviations from the means of {} rows, of which none is beyond |x| "
      "= "
      "{}\n{}",
      options.rows, brief_outward(run.farthest_row, 3, 1), distance_text(run, nets));
  return result;
}

}  // namespace keel
