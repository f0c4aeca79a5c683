// keel predict: what the nets of a weights file say of a table, or of an array of inputs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "../nn/parameter_names.h"
#include "../nn/transformer_weights.h"
#include "examples.h"
#include "kernel_choice.h"
#include "net_inputs.h"
#include "npy.h"
#include "output.h"
#include "standardiser.h"
#include "text_table.h"
#include "train_report.h"
#include "trained_net.h"

namespace keel {
namespace {

struct PredictChoice {
  std::string net, weights, modules, data, x, target, save;
  std::vector<std::string> ignore;
  bool array() const { return save.ends_with(".npy"); }
};

Examples examples_of(const PredictChoice& choice, const SafeTensors& file, const Context& context) {
  if (!choice.x.empty()) return array_inputs(choice.x, "predict");
  return table_inputs(choice.data, choice.target, ignored_columns(choice.ignore),
                      {names_of_features(file, choice.weights), choice.weights}, context);
}

/// Of every net of the file: [rows, outputs], in y's own units, float64 on the CPU.
struct Predictions {
  std::vector<Tensor> by_member;
  std::int64_t outputs = 0;
  std::string net;
};

Predictions predict_all(const PredictChoice& choice, const SafeTensors& file,
                        const Examples& examples, const Context& context) {
  const std::vector<std::string> modules = modules_of(choice.modules);
  const Spec spec = parse_spec(net_of(choice.net, file, choice.weights));
  Predictions result;
  result.net = spec_text(spec);
  for (const TrainedNet& trained :
       trained_nets(spec, file, choice.weights, modules, standardise_of(file), context)) {
    const Net& net = trained.net;
    if (examples.features != net.input_width()) {
      const bool target = choice.target.empty() && examples.features == net.input_width() + 1;
      fail<ShapeError>("predict", "{} has {} columns of features and {} takes {}, wanted as many{}",
                       choice.data.empty() ? choice.x : choice.data, examples.features,
                       choice.weights, net.input_width(),
                       !target || !choice.x.empty() ? ""
                       : net.output_width() > 1     ? "; --ignore leaves one out"
                                                    : "; --target names one that is none");
    }
    const Standardiser units = units_of_weights(file, choice.weights, net.input_width());
    std::vector<double> values = units.y_in_own_units(
        net.predict(units.inputs(examples, context.device)).to_vector<double>());
    const auto lost = std::find_if_not(values.begin(), values.end(),
                                       [](double value) { return std::isfinite(value); });
    result.outputs = net.output_width();
    check(lost == values.end(), "predict", "the prediction of row {} (from 0) is {}",
          (lost - values.begin()) / result.outputs, lost == values.end() ? 0.0 : *lost);
    result.by_member.push_back(Tensor::from(values, {examples.rows, result.outputs}));
  }
  return result;
}

// [rows, outputs], of an ensemble [members, rows, outputs].
Tensor as_array(const Predictions& predictions) {
  const auto& all = predictions.by_member;
  if (all.size() == 1) return all[0];
  const std::int64_t rows = all[0].size(0);
  const Tensor stacked = Tensor::empty({std::ssize(all), rows, predictions.outputs}, DType::f64);
  for (std::int64_t s = 0; s < std::ssize(all); ++s) copy(stacked[s], all[s]);
  return stacked;
}

// By member; of a row its outputs, one after another.
MemberRows as_rows(const Predictions& predictions) {
  MemberRows rows;
  for (const Tensor& one : predictions.by_member) rows.push_back(one.to_vector<double>());
  return rows;
}

std::string as_csv(const Predictions& predictions) {
  const auto members = static_cast<std::int64_t>(predictions.by_member.size());
  std::vector<std::string> header = {"row"};
  for (std::int64_t o = 0; o < predictions.outputs; ++o) {
    const std::string name = fmt::format("output_{}", o);
    const std::string of = predictions.outputs == 1 ? "" : name + "_";
    header.push_back(predictions.outputs == 1 ? "prediction" : name);
    if (members == 1) continue;
    header.push_back(of + "std");
    for (std::int64_t s = 0; s < members; ++s) header.push_back(fmt::format("{}member_{}", of, s));
  }
  Csv csv(header);
  const MemberRows rows = as_rows(predictions);
  const auto outputs = static_cast<std::size_t>(predictions.outputs);
  for (std::size_t row = 0; row * outputs < rows[0].size(); ++row) {
    csv.add(static_cast<std::int64_t>(row));
    for (std::size_t o = 0; o < outputs; ++o) add_prediction(csv, at_row(rows, row * outputs + o));
    csv.end_row();
  }
  return csv.text();
}

int run_predict(const PredictChoice& choice, Context& context) {
  if (choice.data.empty() == choice.x.empty())
    throw UsageError("usage", "wanted --data TABLE or --x ARRAY.npy, one of them");
  if (!choice.x.empty() && !choice.target.empty())
    throw UsageError("usage", "--target is a column of --data, which is not given");
  if (!choice.x.empty() && !choice.ignore.empty())
    throw UsageError("usage", "--ignore is of columns of --data, which is not given");
  const OutputFolder folder(context.options.out.empty() ? "out/predict" : context.options.out);
  check_apart({choice.save, folder.path("summary.json").string()},
              {choice.data, choice.x, choice.weights});
  if (!choice.save.empty()) check_writable(choice.save);
  const SafeTensors file = read_weights(choice.weights);
  check(!is_transformer(file), "predict",
        "{} is of transformers, which continue series: keel forecast --weights", choice.weights);
  const Examples examples = examples_of(choice, file, context);
  const Predictions predictions = predict_all(choice, file, examples, context);
  check<ShapeError>(examples.y.empty() || predictions.outputs == 1, "predict",
                    "got a net of {} outputs with --target, wanted 1", predictions.outputs);

  const auto members = static_cast<std::int64_t>(predictions.by_member.size());
  Json numbers = {
      {"weights", choice.weights},     {"net", predictions.net},         {"members", members},
      {"features", examples.features}, {"outputs", predictions.outputs}, {"rows", examples.rows}};
  numbers[choice.x.empty() ? "data" : "x"] = choice.x.empty() ? choice.data : choice.x;
  if (!choice.ignore.empty()) numbers["ignore"] = choice.ignore;
  TextRows table;
  if (examples.y.empty()) {
    const Tensor all = as_array(predictions);
    const std::vector<double> values = all.to_vector<double>();
    table.push_back({"predictions", all.shape().str()});
    if (!values.empty()) {
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      numbers["smallest"] = *least;
      numbers["largest"] = *most;
      table.push_back({"smallest", brief(*least, 6)});
      table.push_back({"largest", brief(*most, 6)});
    }
  } else {
    numbers["target"] = choice.target;
    table.push_back({"", "rows", "RMSE", "R^2"});
    add_fit(numbers, table, "data", fit_of(as_rows(predictions), examples.y),
            static_cast<std::size_t>(examples.rows), members > 1);
  }
  if (choice.array())
    write_npy(choice.save, as_array(predictions));
  else if (!choice.save.empty())
    write_file(choice.save, as_csv(predictions));
  if (!choice.save.empty()) numbers["saved"] = choice.save;
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << text_table(table, 1);
  return 0;
}

}  // namespace

Run declare_predict(CLI::App& app) {
  const auto choice = std::make_shared<PredictChoice>();
  app.add_option("--weights", choice->weights,
                 "a .safetensors file: of keel train --save-weights, PyTorch, Flax or Keras")
      ->required();
  app.add_option("--net", choice->net,
                 "SPEC: \"dense(128) layernorm relu dense(1)\" (default: what the file of keel "
                 "train says)");
  app.add_option("--modules", choice->modules,
                 "what --weights calls the layers that have weights, in SPEC's order: \"fc1 norm "
                 "fc2\" of fc1.weight, ... (default: their numbers)");
  app.add_option("--data", choice->data, "CSV or whitespace table, with or without a header");
  app.add_option("--target", choice->target,
                 "column of --data that is no feature, and that predictions are judged by: its "
                 "name, or its number from 0, -1 the last");
  declare_ignore(app, choice->ignore);
  app.add_option("--x", choice->x, "inputs [n, features], or [n] of one feature, a .npy file");
  app.add_option("--save", choice->save,
                 "write the predictions, as .npy where that is its name, else as CSV (rows count "
                 "from 0)");
  app.footer(
      "Of keel's own weights in the units of their training, which the file says; of others x is "
      "taken as it is. In float64: what training computed in float32 differs in its last digits. "
      "Features go by the names that keel train's file has of them, where --data has a header, "
      "else they are taken in their order. An ensemble's are the mean, the deviation and each "
      "member's; as .npy [members, n, outputs]. Writes summary.json into --out (default "
      "out/predict).");
  return [choice](Context& context) { return run_predict(*choice, context); };
}

}  // namespace keel
