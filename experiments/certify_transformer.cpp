#include "certify_transformer.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "../nn/transformer_weights.h"
#include "output.h"
#include "progress_bar.h"
#include "sequence_report.h"
#include "text_table.h"

namespace keel {
namespace {

constexpr double kFarthestSequence = 1e12;

struct TransformerFindings {
  std::vector<SequenceBound> bounds;  // of each net
  MemberRows one_step;                // of each row behind the first; none without a series
};

TransformerFindings examine(const TransformerChoice& choice, const std::vector<Transformer>& nets,
                            const SequenceUnits& units, const std::vector<double>& series,
                            const Interrupt& interrupt, const Context& context) {
  const std::int64_t length = nets[0].options().length, rows = std::ssize(series);
  const Tensor starts = spread_windows(units.standardised(series), length);
  SearchOptions options =
      search_options(choice.search, sequence_search(length, context.options.seed));
  options.stop = interrupt.flag();
  StatusLine status(context.shows_progress());
  status.show("proving, and searching for the largest prediction ...");
  TransformerFindings found{std::vector<SequenceBound>(nets.size()),
                            MemberRows(rows < 2 ? 0 : nets.size())};
  const auto examine_one = [&](std::size_t s) {
    if (rows > 1) {
      found.one_step[s] = SequencePredictor(nets[s], units).one_step(series, 1, rows);
      check_finite(found.one_step[s], "certify", "one step ahead", 1, nets[s].options().seeds[0]);
    }
    found.bounds[s] =
        bound_and_search(nets[s], starts, options, choice.search.wanted(units.scale), "certify");
  };
  each_net(context.device, nets.size(), examine_one);
  return found;
}

Json numbers_of(const TransformerChoice& choice, const TransformerOptions& net, std::int64_t rows) {
  Json numbers = {{"mode", "trained"},
                  {"weights", choice.weights},
                  {"length", net.length},
                  {"width", net.width},
                  {"heads", net.heads},
                  {"hidden", net.hidden},
                  {"blocks", net.blocks},
                  {"norms", places_of(net.norms)},
                  {"norm", net.norms.kind()},
                  {"seeds", net.seeds},
                  {"region", choice.search.farthest}};
  if (!choice.data.empty())
    numbers.update({{"data", choice.data}, {"target", choice.target}, {"rows", rows}});
  return numbers;
}

}  // namespace

void check_transformer(const CLI::App& app) {
  for (const char* name :
       {"--net", "--modules", "--pieces", "--boxes", "--standardise", "--ignore"})
    if (app.count(name) > 0)
      throw UsageError("usage", fmt::format("{} is for a net of a SPEC: --weights is of a "
                                            "transformer, which says itself what it is",
                                            name));
  for (const char* name : {"--within", "--ranges"})
    if (app.count(name) > 0)
      throw UsageError("usage", fmt::format("{} is for a net of a SPEC: a transformer is bounded "
                                            "for every sequence or not at all",
                                            name));
}

int run_transformer(const SafeTensors& file, const TransformerChoice& choice, Context& context) {
  if (choice.search.farthest > kFarthestSequence)
    throw UsageError("usage",
                     fmt::format("got --farthest {:g}, wanted at most {:g} of a transformer: "
                                 "farther out double rounds its biases away",
                                 choice.search.farthest, kFarthestSequence));
  const OutputFolder folder(context.options.out.empty() ? "out/certify" : context.options.out);
  check_apart({folder.path("summary.json").string()}, {choice.data, choice.weights});
  const Transformer all = [&] {
    Transformer loaded = load_transformer(file, choice.weights, context.device);
    if (choice.member < 0) return loaded;
    const std::int64_t members = loaded.members();
    check(choice.member < members, "weights", "{}: got member {}, wanted one of its {}, from 0",
          choice.weights, choice.member, members);
    return loaded.member(choice.member);
  }();
  const SequenceUnits units = units_of_file(file, choice.weights, context);
  const std::vector<double> series =
      choice.data.empty() ? std::vector<double>{} : read_column(choice.data, choice.target);

  Json numbers = numbers_of(choice, all.options(), std::ssize(series));
  const Interrupt interrupt;
  const TransformerFindings found =
      examine(choice, members_of(all), units, series, interrupt, context);
  TextRows fits;
  if (!found.one_step.empty()) {
    fits = {{"", "rows", "RMSE", "R^2"}};
    const Fit fit = add_sequence_fit(numbers, fits, "one_step", found.one_step,
                                     {series.begin() + 1, series.end()});
    note_another_series(fit, context);
  }
  const TextRows facts = add_bounds(numbers, found.bounds, all.options().seeds, units);
  if (choice.member >= 0) numbers["member"] = choice.member;
  if (raised(interrupt.flag())) numbers["stopped"] = true;
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << (fits.empty() ? "" : text_table(fits, 1) + "\n") << text_table(facts, 1);
  return ended(interrupt, context);
}

}  // namespace keel
