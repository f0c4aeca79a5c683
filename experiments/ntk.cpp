// keel ntk: the kernel matrix of a net at given inputs, to a .npy file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>

#include "../ntk/jacobian.h"
#include "examples.h"
#include "kernel_choice.h"
#include "net_inputs.h"
#include "npy.h"
#include "output.h"
#include "standardiser.h"
#include "text_table.h"
#include "watch.h"

namespace keel {
namespace {

struct NtkChoice {
  KernelChoice kernel;
  std::string x1, x2, save, outputs = "trace", output = "ntk";
  std::vector<std::string> ignore{};
};

struct Inputs {
  Examples first, second;
};

bool is_array(const std::string& path) { return path.ends_with(".npy"); }

// What is no .npy is a table, whose features go by the names that the weights have of them or, of
// the second table, the first one.
Inputs read_inputs(const NtkChoice& choice, const std::optional<SafeTensors>& weights,
                   const Context& context) {
  FeatureNames names{
      weights ? names_of_features(*weights, choice.kernel.weights) : std::vector<std::string>(),
      choice.kernel.weights};
  const auto read = [&](const std::string& path, const IgnoredColumns& ignored) {
    if (is_array(path)) return array_inputs(path, "ntk");
    return table_inputs(path, "", ignored, names, context);
  };
  std::vector<std::string> ignore = choice.ignore;  // numbers are the first table's, if it is one
  const Examples first = read(choice.x1, [&](const Table& table) {
    const std::vector<std::int64_t> columns = ignored_columns(choice.ignore)(table);
    for (std::size_t i = 0; !table.names.empty() && i < columns.size(); ++i)
      ignore[i] = table.names[static_cast<std::size_t>(columns[i])];
    return columns;
  });
  if (choice.x2.empty()) return {first, first};
  if (names.names.empty() && first.named) names = {first.names, choice.x1};
  return {first, read(choice.x2, ignored_if_there(ignore))};
}

Tensor infinite(const NtkChoice& choice, const Tensor& x1, const Tensor& x2, const Context& context,
                const WorkProgress& progress) {
  const auto kernel =
      make_infinite(choice.kernel, x1.size(1), context,
                    choice.output == "ntk" ? KernelOutput::ntk : KernelOutput::nngp);
  const Tensor into =
      Tensor::empty({x1.size(0), x2.size(0)}, choice.kernel.element(), context.device);
  const auto a = kernel->points(x1.to(context.device));
  const auto b = choice.x2.empty() ? a : kernel->points(x2.to(context.device));
  kernel->gram(*a, *b, into, progress);
  return into;
}

Tensor empirical(const NtkChoice& choice, const Net& net, const Tensor& x1, const Tensor& x2,
                 const Context& context, const WorkProgress& progress) {
  const auto at = [&](const Tensor& x) {
    return Jacobian(net, x.to(choice.kernel.element()).to(context.device));
  };
  const OutputMode mode = choice.outputs == "trace"  ? OutputMode::trace
                          : choice.outputs == "diag" ? OutputMode::diag
                                                     : OutputMode::full;
  const Jacobian a = at(x1);
  if (choice.x2.empty()) return a.gram(a, mode, true, progress);
  return a.gram(at(x2), mode, true, progress);
}

/// The range of a tensor's entries, and the first that is not finite, or -1.
struct Extent {
  double least = 0, most = 0, bad_value = 0;
  std::int64_t bad = -1;
};

Extent extent_of(const Tensor& host) {
  Extent extent;
  if (host.elements() == 0) return extent;
  dispatch(host.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* values = host.data<T>();
    T least = values[0], most = values[0];
    for (std::int64_t i = 0; i < host.elements(); ++i) {
      if (!std::isfinite(values[i])) {
        extent.bad = i;
        extent.bad_value = values[i];
        return;
      }
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    extent.least = least;
    extent.most = most;
  });
  return extent;
}

int run_ntk(NtkChoice choice, Context& context) {
  const std::optional<SafeTensors> weights = completed(choice.kernel);
  if (choice.kernel.infinite() && choice.outputs != "trace")
    throw UsageError("usage",
                     "--outputs is for --mode empirical: at infinite width the outputs of "
                     "a net share one kernel and do not mix");
  if (!choice.kernel.infinite() && choice.output != "ntk")
    throw UsageError("usage", "--kernel nngp is for --mode infinite");
  if (!choice.ignore.empty() && is_array(choice.x1) && (choice.x2.empty() || is_array(choice.x2)))
    throw UsageError("usage", "--ignore is of a table's columns, wanted one for --x1 or --x2");
  OutputFolder folder(context.options.out.empty() ? "out/ntk" : context.options.out);
  const auto [rows1, rows2] = read_inputs(choice, weights, context);
  check<ShapeError>(rows1.features == rows2.features, "ntk",
                    "{} has {} features and {} has {}, wanted as many", choice.x1, rows1.features,
                    choice.x2, rows2.features);
  check_apart({choice.save, folder.path("summary.json").string()},
              {choice.x1, choice.x2, choice.kernel.weights});
  check_writable(choice.save);

  std::optional<Watch> watch(context);
  const WorkProgress progress = watch->of(fmt::format("kernel of {} x {}", rows1.rows, rows2.rows));
  Standardiser units = Standardiser::none(rows1.features);
  std::optional<Net> net;
  if (!choice.kernel.infinite()) net = make_net(choice.kernel, rows1.features, weights, context);
  if (weights) units = units_of_weights(*weights, choice.kernel.weights, rows1.features);
  const Tensor x1 = units.inputs(rows1, Device::cpu()), x2 = units.inputs(rows2, Device::cpu());
  const Tensor host = (net ? empirical(choice, *net, x1, x2, context, progress)
                           : infinite(choice, x1, x2, context, progress))
                          .to(Device::cpu());
  const Extent extent = extent_of(host);
  check(extent.bad < 0, "ntk",
        "entry {} of the kernel (in row-major order, from 0) is {}: too large for {}; try {}",
        extent.bad, extent.bad_value, choice.kernel.dtype,
        choice.kernel.dtype == "f32" ? "--dtype f64" : "smaller inputs");
  write_npy(choice.save, host, watch->of("writing " + choice.save));
  watch.reset();

  Json numbers = kernel_json(choice.kernel, context);
  numbers["kernel"] = choice.output;
  std::vector<std::int64_t> shape;
  for (int i = 0; i < host.rank(); ++i) shape.push_back(host.size(i));
  numbers["shape"] = shape;
  numbers["x1"] = choice.x1;
  if (!choice.x2.empty()) numbers["x2"] = choice.x2;
  if (!choice.ignore.empty()) numbers["ignore"] = choice.ignore;
  if (weights) numbers["standardise"] = units.moves_x() ? "x" : "none";
  numbers["saved"] = choice.save;
  std::vector<std::vector<std::string>> table = {{"kernel", host.shape().str()},
                                                 {"saved", choice.save}};
  if (host.elements() > 0) {
    numbers["smallest"] = extent.least;
    numbers["largest"] = extent.most;
    table.push_back({"smallest entry", brief(extent.least, 6)});
    table.push_back({"largest entry", brief(extent.most, 6)});
  }
  const Json summary = summarise(context, numbers);
  folder.write("summary.json", json_text(summary));
  if (context.options.json)
    context.out << json_text(summary);
  else if (!context.options.quiet)
    context.out << text_table(table, 2);
  return 0;
}

}  // namespace

Run declare_ntk(CLI::App& app) {
  const auto choice = std::make_shared<NtkChoice>();
  choice->kernel.dtype = "f64";
  declare_kernel(app, choice->kernel, "of the matrix: f32 or f64");
  app.add_option(
         "--x1", choice->x1,
         "inputs [n, features], or [n] of one feature, a .npy file; or a table of them, CSV "
         "or whitespace")
      ->required();
  app.add_option("--x2", choice->x2, "inputs [m, features] (default: those of --x1)");
  declare_ignore(app, choice->ignore);
  app.add_option("--outputs", choice->outputs,
                 "empirical, nets of o outputs: trace (mean over outputs, [n, m]), diag [o, n, m] "
                 "or full [n, m, o, o]")
      ->check(one_of({"trace", "diag", "full"}))
      ->capture_default_str();
  app.add_option("--kernel", choice->output,
                 "infinite: ntk, or nngp, the covariance of outputs at initialisation")
      ->check(one_of({"ntk", "nngp"}))
      ->capture_default_str();
  app.add_option("--save", choice->save, "write the kernel here, as .npy")->required();
  app.footer(
      "Of --weights that keel trained x is in the units of their training, and a table's features "
      "go by the names that the file has of them, as for keel predict. Writes summary.json into "
      "--out (default out/ntk).");
  return [choice](Context& context) { return run_ntk(*choice, context); };
}

}  // namespace keel
