#include "reproduce.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "interrupt.h"
#include "plotting.h"

namespace keel {
namespace {

struct ReproduceChoice {
  std::string name;
  ReproduceOptions options;
  bool no_plot = false;
};

constexpr const char* kTable1 = "table1";
constexpr const char* kAllFigures = "figures";

std::string known_names() {
  std::string names;
  for (const Experiment& experiment : experiments()) names += std::string(experiment.name) + ", ";
  return names + kAllFigures;
}

struct Done {
  Json summary;
  std::string table;
  std::vector<std::string> pictures;
  std::string problem;  // what does not hold, or a picture that failed: numbers are worth having
  std::string stopped;
};

// One experiment, from its computation to its pictures.
Done reproduce_one(const Context& outer, const ReproduceChoice& choice,
                   const Experiment& experiment, const OutputFolder& folder) {
  Context context = outer;
  context.started = std::chrono::steady_clock::now();  // of this one, where it is one of several
  const Reproduced result = experiment.run(context, choice.options, folder);
  Done done;
  done.table = result.table;
  done.problem = result.problem;
  done.stopped = result.stopped;
  if (!done.stopped.empty()) return done;
  done.summary = summarise(context, result.numbers);
  folder.write("summary.json", json_text(done.summary));
  if (!experiment.picture || !result.draws || choice.no_plot) return done;
  const std::string problem = draw(experiment.picture, folder, context, done.summary);
  if (done.problem.empty()) done.problem = problem;
  if (problem.empty()) done.pictures = done.summary["pictures"].get<std::vector<std::string>>();
  return done;
}

// Options of one experiment mean nothing to another.
void check_options(const ReproduceChoice& choice, const CLI::App& app) {
  for (const char* name : {"--standardise", "--ln-affine", "--param", "--weights"})
    if (choice.options.table1.recipes && app.count(name) > 0)
      throw UsageError("usage", fmt::format("--recipes tries every {}: leave it out", name));
  for (const Experiment& experiment : experiments()) {
    if (experiment.name != choice.name && choice.name != kAllFigures) continue;
    if (choice.options.epochs && !experiment.trains && experiment.name == choice.name)
      throw UsageError("usage", fmt::format("--epochs is not for reproduce {}", choice.name));
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() == 0 || option->get_group() != kTable1 || choice.name == kTable1)
        continue;
      if (experiment.takes_data && option->get_name() == "--data") continue;
      throw UsageError("usage",
                       fmt::format("{} is not for reproduce {}", option->get_name(), choice.name));
    }
  }
}

int run_reproduce(const ReproduceChoice& choice, Context& context) {
  const bool all = choice.name == kAllFigures;
  std::vector<const Experiment*> chosen;
  for (const Experiment& experiment : experiments())
    if (all ? experiment.in_figures : choice.name == experiment.name) chosen.push_back(&experiment);
  if (chosen.empty())
    throw UsageError("reproduce",
                     fmt::format("got '{}', wanted one of {}", choice.name, known_names()));

  const OutputFolder folder(context.options.out.empty() ? "out/" + choice.name
                                                        : context.options.out);
  std::vector<OutputFolder> folders;  // tried before any work starts
  for (const Experiment* experiment : chosen)
    folders.push_back(all ? OutputFolder(folder.path(experiment->name)) : folder);
  Json figures = Json::object(), pictures = Json::array();
  Json summary;
  std::string problems;  // a line each
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Done done = reproduce_one(context, choice, *chosen[i], folders[i]);
    if (!done.stopped.empty()) {
      context.err << fmt::format("keel: {}\n", done.stopped);
      return stopped_code();
    }
    if (!context.options.json && !context.options.quiet)
      context.out << (i > 0 ? "\n" : "") << done.table << std::flush;
    for (const std::string& picture : done.pictures) pictures.push_back(picture);
    if (!done.problem.empty()) problems += fmt::format("keel: {}\n", done.problem);
    figures[chosen[i]->name] = done.summary;
    summary = done.summary;
  }
  if (all) {
    summary = summarise(context, {{"figures", figures}, {"pictures", pictures}});
    folder.write("summary.json", json_text(summary));
  }
  if (context.options.json) {
    context.out << json_text(summary);
  } else if (!context.options.quiet && !pictures.empty()) {
    context.out << "\npictures:\n";
    for (const Json& picture : pictures) context.out << picture.get<std::string>() << '\n';
  }
  if (problems.empty()) return 0;
  context.err << problems;
  return 1;
}

}  // namespace

Run declare_reproduce(CLI::App& app) {
  const auto choice = std::make_shared<ReproduceChoice>();
  std::size_t width = 0;  // of the names
  for (const Experiment& experiment : experiments())
    width = std::max(width, std::string_view(experiment.name).size());
  std::string list;
  for (const Experiment& experiment : experiments())
    list += fmt::format("\n  {:{}} {}", experiment.name, width, experiment.summary);
  list += fmt::format("\n  {:{}} all of these that need no data", kAllFigures, width);
  app.add_option("name", choice->name, "what to reproduce:" + list)->required();
  app.add_option("--seeds", choice->options.seeds, "nets a panel (default: as in the paper)")
      ->check(check_whole(1, 1000));
  app.add_option("--epochs", choice->options.epochs, "of training (default: as in the paper)")
      ->check(check_whole(1, 1000000000));
  app.add_flag("--no-plot", choice->no_plot, "write the numbers, draw no picture");
  declare_table1(app, choice->options.table1);
  app.footer(
      "Writes numbers (.csv, .npy), summary.json and the pictures into --out (default "
      "out/NAME).");
  return [choice, &app](Context& context) {
    check_options(*choice, app);
    return run_reproduce(*choice, context);
  };
}

}  // namespace keel
