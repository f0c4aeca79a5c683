// keel train: a net, or an ensemble of them, on any table of numbers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>

#include "../nn/batch_norm_fold.h"
#include "../nn/frozen.h"
#include "../nn/train_step.h"
#include "../nn/trainer.h"
#include "../nn/weights.h"
#include "command.h"
#include "examples.h"
#include "feature_names.h"
#include "hold_out.h"
#include "interrupt.h"
#include "output.h"
#include "progress_bar.h"
#include "standardiser.h"
#include "statistics.h"
#include "text_table.h"
#include "train_report.h"

namespace keel {
namespace {

struct TrainChoice {
  std::string net, data, target, test, standardise = "x", save_weights, save, checkpoint, history;
  std::int64_t epochs = 1000, batch = 0, seeds = 1;
  double lr = 1e-3, hold_out = 0;
  bool resume = false;
  std::vector<std::string> ignore{};
};

// Throws DataError unless float32 holds all of a file's examples, standardised.
void check_float32(const Standardiser& standardiser, const Examples& examples,
                   const std::string& file, const std::string& standardise) {
  const auto held = [&](double value, std::int64_t row, const std::string& column) {
    if (!std::isfinite(static_cast<float>(value)))
      throw DataError(file, fmt::format("row {} (from 0), {}: got {} by --standardise {}, more "
                                        "than float32 holds",
                                        row, column, value, standardise));
  };
  const std::vector<double> x = standardiser.x(examples), y = standardiser.y(examples);
  const auto features = static_cast<std::size_t>(examples.features);
  for (std::size_t i = 0; i < x.size(); ++i)
    held(x[i], static_cast<std::int64_t>(i / features), shown(examples.names[i % features]));
  for (std::size_t i = 0; i < y.size(); ++i) held(y[i], static_cast<std::int64_t>(i), "the target");
}

Tensor to_device(const std::vector<double>& values, std::int64_t rows, Device device) {
  const auto cols = static_cast<std::int64_t>(values.size()) / rows;
  return Tensor::from(values, {rows, cols}).to(DType::f32).to(device);
}

MemberRows predict(const Net& net, const Standardiser& standardiser, const Examples& examples,
                   const std::string& file) {
  // In float32, as in training, whatever the net has now.
  const Tensor x = to_device(standardiser.x(examples), examples.rows, net.options().device);
  const DType dtype = net.flat().dtype();
  const std::vector<double> all = net.predict(x.to(dtype)).to_vector<double>();
  MemberRows rows;
  for (auto row = all.begin(); row != all.end(); row += examples.rows) {
    rows.emplace_back(row, row + examples.rows);
    for (double& value : rows.back()) value = standardiser.y_in_own_units(value);
    const auto lost = std::find_if_not(rows.back().begin(), rows.back().end(),
                                       [](double value) { return std::isfinite(value); });
    check(lost == rows.back().end(), "train", "{}: the prediction of row {} (from 0) is {} in {}",
          file, lost - rows.back().begin(), lost == rows.back().end() ? 0.0 : *lost,
          name_of(dtype));
  }
  return rows;
}

// Everything read, checked and tried before training starts.
struct TrainTask {
  TrainTask(const TrainChoice& choice, const Context& context)
      : folder(context.options.out.empty() ? "out/train" : context.options.out),
        standardise(parse_standardise(choice.standardise)),
        table(read_table(choice.data, 2, ignored_columns(choice.ignore))),
        split(split_of(training_examples(table, choice.target), choice.hold_out,
                       context.options.seed, choice.data)),
        test(split.held_out),
        standardiser(standardise, split.training),
        net(choice.net, split.training.features, net_options(choice, context)) {
    check(net.output_width() == 1, "train", "got a net of {} outputs, wanted dense(1) at its end",
          net.output_width());
    batch_norm_folds(net.spec());  // throws where a batchnorm could not be frozen in the end
    check_steps(net, split.training.rows, choice.batch);
    check_float32(standardiser, split.training, choice.data, choice.standardise);
    check_float32(standardiser, test, choice.data, choice.standardise);
    if (!choice.test.empty()) {
      const Table rows = read_table(choice.test, 1, ignored_as_in(table, choice.target));
      test = test_examples(rows, table, choice.target);
      context.note(order_note(rows, table));
      check_float32(standardiser, test, choice.test, choice.standardise);
    }
    for (const std::string& path : {choice.save, choice.save_weights, choice.history})
      if (!path.empty()) check_writable(path);
    checkpoint = choice.checkpoint.empty() ? folder.path("checkpoint.safetensors").string()
                                           : choice.checkpoint;
    check(!choice.resume || std::filesystem::exists(checkpoint), "train",
          "got --resume, but there is no checkpoint '{}'", checkpoint);
    for (const std::string& path : {checkpoint, old_checkpoint()}) check_writable(path);
    check_apart({choice.save, choice.save_weights, choice.history, checkpoint, old_checkpoint(),
                 folder.path("summary.json").string()},
                {choice.data, choice.test});
  }

  static NetOptions net_options(const TrainChoice& choice, const Context& context) {
    NetOptions options;
    options.members = choice.seeds;
    options.seed = context.options.seed;
    options.device = context.device;
    return options;
  }

  // Who forgot --resume may still want what an earlier run had reached.
  std::string old_checkpoint() const { return checkpoint + ".old"; }

  OutputFolder folder;
  Standardise standardise;
  Table table;
  RowSplit split;
  Examples test;  // rows held out, or of a table of their own, or none
  Standardiser standardiser;
  Net net;
  std::string checkpoint;
};

Tensor inputs_of(const TrainTask& task, const Context& context) {
  return to_device(task.standardiser.x(task.split.training), task.split.training.rows,
                   context.device);
}

TrainReport train_with_bar(TrainTask& task, const TrainChoice& choice, const Context& context) {
  ProgressBar bar("train", choice.seeds * choice.epochs, context.shows_progress());
  const Interrupt interrupt;
  TrainOptions options;
  options.epochs = choice.epochs;
  options.batch = choice.batch;
  options.optimiser = AdamOptions{choice.lr};
  options.progress = [&](const Progress& progress) { bar.update(progress.epochs_done); };
  options.stop = interrupt.flag();
  options.checkpoint = task.checkpoint;
  options.resume = choice.resume;
  options.earlier_checkpoint = task.old_checkpoint();
  const Tensor y =
      to_device(task.standardiser.y(task.split.training), task.split.training.rows, context.device);
  if (!choice.resume && std::filesystem::exists(task.checkpoint))
    context.note(fmt::format("note: an earlier run's checkpoint goes to {} when this one's is made",
                             task.old_checkpoint()));
  return train(task.net, inputs_of(task, context), y, options);
}

int stopped(const TrainReport& report, const TrainTask& task, const TrainChoice& choice,
            const Context& context) {
  std::int64_t done = 0;  // of all nets: some may be finished where others have not begun
  for (std::int64_t epochs : report.epochs_done) done += epochs;
  context.err << fmt::format(
      "keel: stopped after {} of {} epochs; the checkpoint is {}; to go on: {}{}\n", done,
      choice.seeds * choice.epochs, task.checkpoint, context.command_line,
      choice.resume ? "" : " --resume");
  return stopped_code();
}

int run_train(const TrainChoice& choice, Context& context) {
  TrainTask task(choice, context);
  for (std::int64_t feature : task.standardiser.constant_features())
    context.note(constant_note(task.split.training, feature, choice.data));
  const TrainReport report = train_with_bar(task, choice, context);
  if (report.interrupted) return stopped(report, task, choice, context);

  const Net net = frozen(task.net, inputs_of(task, context));
  if (!choice.save_weights.empty()) {
    std::map<std::string, std::string> notes = {{kStandardiseKey, choice.standardise}};
    if (choice.standardise != "none") notes[kColumnsKey] = task.standardiser.columns();
    if (const std::string names = feature_names(task.split.training); !names.empty())
      notes[kFeaturesKey] = names;
    else if (!task.table.names.empty())
      context.note(
          fmt::format("note: names repeat in the header of {}: {} keeps none, and features "
                      "go by their order",
                      choice.data, choice.save_weights));
    if (!task.split.text.empty()) notes[kHeldOutKey] = task.split.text;
    save_weights(net, choice.save_weights, notes);
    if (task.net.mixes_rows())
      context.note(fmt::format(
          "note: the weights in {} took the batchnorms in; they are of '{}', in float64",
          choice.save_weights, spec_text(net.spec())));
  }
  const std::vector<std::uint64_t>& seeds = net.options().seeds;
  const MemberRows at_training = predict(net, task.standardiser, task.split.training, choice.data);
  Json numbers = {{"net", spec_text(task.net.spec())},
                  {"parameters", task.net.parameters_per_member()},
                  {"data", choice.data},
                  {"target", choice.target},
                  {"features", task.split.training.features},
                  {"standardise", choice.standardise},
                  {"epochs", choice.epochs},
                  {"lr", choice.lr},
                  {"batch", choice.batch},
                  {"seeds", seeds},
                  {"train_rows", task.split.training.rows},
                  {"training_seconds", report.seconds}};
  if (!choice.ignore.empty()) numbers["ignore"] = choice.ignore;
  if (!choice.save_weights.empty()) {
    numbers["saved_weights"] = choice.save_weights;
    numbers["saved_net"] = spec_text(net.spec());
  }
  std::vector<std::vector<std::string>> table = {{"", "rows", "RMSE", "R^2"}};
  const bool ensemble = choice.seeds > 1;
  const Fit fit = fit_of(at_training, task.split.training.y);
  add_fit(numbers, table, "train", fit, static_cast<std::size_t>(task.split.training.rows),
          ensemble);
  MemberRows at_test;
  if (task.test.rows > 0) {
    at_test = predict(net, task.standardiser, task.test,
                      choice.test.empty() ? "a row held out" : choice.test);
    if (!choice.test.empty())
      numbers["test"] = choice.test;
    else
      numbers["hold_out"] = choice.hold_out;
    numbers["test_rows"] = task.test.rows;
    if (!task.test.y.empty())
      add_fit(numbers, table, "test", fit_of(at_test, task.test.y),
              static_cast<std::size_t>(task.test.rows), ensemble);
  }
  if (fit.r2.mean < 0)
    context.note(
        fmt::format("note: R^2 is below 0: the mean of the rows that it was trained on "
                    "says more of them; try {}more --epochs or another --lr",
                    choice.standardise == "xy" ? "" : "--standardise xy, "));
  if (!choice.history.empty()) {
    write_file(choice.history, history_csv(report.losses, task.standardiser.y_scale(), seeds));
    numbers["history"] = choice.history;
  }
  if (!choice.save.empty())
    write_file(choice.save,
               predictions_csv(at_test.empty() ? at_training : at_test, seeds, task.split.rows));
  const Json summary = summarise(context, numbers);
  task.folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << text_table(table, 1)
                << fmt::format("trained in {:.2f} s on {}\n", report.seconds, context.device);
  return 0;
}

}  // namespace

Run declare_train(CLI::App& app) {
  const auto choice = std::make_shared<TrainChoice>();
  app.add_option("--net", choice->net, "SPEC: \"dense(128) layernorm relu dense(1)\"")->required();
  app.add_option("--data", choice->data, "CSV or whitespace table, with or without a header")
      ->required();
  app.add_option("--target", choice->target,
                 "column to predict: its name, or its number from 0, -1 the last")
      ->required();
  declare_ignore(app, choice->ignore);
  app.add_option("--test", choice->test, "table to predict; with the target, to be judged by");
  declare_hold_out(app, choice->hold_out);
  app.add_option("--standardise", choice->standardise,
                 "none, x or xy: by mean and population deviation of the training rows")
      ->check(one_of({"none", "x", "xy"}))
      ->capture_default_str();
  app.add_option("--epochs", choice->epochs, "passes over the training rows")
      ->check(check_whole(1, 1000000000))
      ->capture_default_str();
  app.add_option("--lr", choice->lr, "Adam's step size")
      ->check(check_positive)
      ->capture_default_str();
  app.add_option("--batch", choice->batch, "rows a step; 0: all")
      ->check(check_whole(0, 1000000000))
      ->capture_default_str();
  app.add_option("--seeds", choice->seeds, "nets, from seeds --seed, --seed + 1, ...")
      ->check(check_whole(1, 1000000))
      ->capture_default_str();
  app.add_option("--save-weights", choice->save_weights, "write the weights as .safetensors");
  app.add_option("--save", choice->save,
                 "write predictions of --test, or of the rows held out, or else of --data, as CSV "
                 "(rows count from 0)");
  app.add_option("--history", choice->history,
                 "write each epoch's mean squared error, before its steps, as CSV");
  app.add_option(
      "--checkpoint", choice->checkpoint,
      "written every minute, at the end, on Ctrl-C (default OUT/checkpoint.safetensors)");
  app.add_flag("--resume", choice->resume, "go on from the checkpoint");
  app.footer("Writes summary.json into --out (default out/train).");
  return [choice](Context& context) { return run_train(*choice, context); };
}

}  // namespace keel
