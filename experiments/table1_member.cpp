#include "table1_member.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "../nn/checkpoint.h"
#include "../nn/safetensors.h"
#include "../nn/trainer.h"
#include "boosting.h"
#include "interrupt.h"
#include "standardiser.h"
#include "toy_figure.h"

namespace keel {
namespace {

constexpr const char* kTag = "table1";
constexpr const char* kFormat = "keel table1 member 1";
constexpr double kLearningRate = 1e-3;

Tensor to_tensor(const std::vector<double>& values, std::int64_t cols, Device device) {
  const auto rows = static_cast<std::int64_t>(values.size()) / cols;
  for (double value : values)
    check(std::isfinite(static_cast<float>(value)), kTag,
          "got {} as an input or target, which float32 cannot hold", value);
  return Tensor::from(values, {rows, cols}).to(DType::f32).to(device);
}

std::vector<double> predict(const Net& net, const Standardiser& standardiser,
                            const Examples& examples) {
  const Tensor x = to_tensor(standardiser.x(examples), examples.features, net.options().device);
  std::vector<double> values = net.predict(x).to_vector<double>();
  for (double& value : values) {
    value = standardiser.y_in_own_units(value);
    check(std::isfinite(value), kTag, "got a prediction of {}, wanted a finite one", value);
  }
  return values;
}

Net make_net(const Member& member, std::int64_t features, Device device) {
  NetOptions options;
  options.seed = member.seed;
  options.device = device;
  options.parameterisation =
      member.recipe.parameterisation == "ntk" ? Parameterisation::ntk : Parameterisation::standard;
  if (member.recipe.weights == "uniform") options.weights = Distribution::uniform;
  return Net(member.spec(), features, options);
}

}  // namespace

std::string Recipe::text() const {
  return fmt::format("{} standardised, LN {} gain and bias, {} parameterisation{}",
                     standardise == "xy" ? "inputs and target" : "inputs",
                     ln_affine ? "with" : "without", parameterisation,
                     weights == "uniform" ? ", uniform weights" : "");
}

std::string Recipe::name() const {
  return fmt::format("{}-{}-{}{}", standardise, ln_affine ? "affine" : "plain", parameterisation,
                     weights == "uniform" ? "-uniform" : "");
}

const std::vector<std::string>& table1_methods() {
  static const std::vector<std::string> all = {"standard",     "ln_first",      "ln_second",
                                               "ln_every",     "xgboost",       "ntk_standard",
                                               "ntk_ln_first", "ntk_ln_second", "ntk_ln_every"};
  return all;
}

std::string Member::spec() const {
  const std::string net = is_kernel() ? method.substr(4) : method;
  std::string text = toy_net(net, "relu").spec;
  // In the theory, and so in its kernels, LN has neither gain nor bias.
  if (is_kernel() || !recipe.ln_affine) {
    const std::string word = "layernorm", plain = "layernorm(affine=0)";
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += plain.size())
      text.replace(at, word.size(), plain);
  }
  return text;
}

std::string Member::file() const {
  return fmt::format("members/{}{}_{}.safetensors", method, is_net() ? "_" + recipe.name() : "",
                     seed);
}

Members::Members(const Protein& protein, const Context& context, const Table1Options& options,
                 const OutputFolder& folder, StopFlag stop)
    : protein_(protein), context_(context), options_(options), folder_(folder), stop_(stop) {
  const Examples& rows = protein.rows;
  fingerprint_ = fingerprint(Tensor::from(rows.x, {rows.rows, rows.features})) + "-" +
                 fingerprint(Tensor::from(rows.y, {rows.rows}));
}

std::string Members::identity(const Member& member) const {
  std::string what =
      fmt::format("{} on data {}, split {}", member.method, fingerprint_, member.seed);
  if (member.is_net())
    what += fmt::format(", {}, {} epochs, lr {}, {}", member.recipe.text(), member.epochs,
                        kLearningRate,
                        net_text(make_net(member, protein_.rows.features, context_.device)));
  if (member.method == "xgboost") what += ", version " + boosting_version();
  if (member.is_kernel())
    what += fmt::format(", rows {}, ridge {}, on {}",
                        options_.ntk_rows == 0 ? "all" : std::to_string(options_.ntk_rows),
                        options_.ntk_ridge ? shortest(*options_.ntk_ridge) : "chosen",
                        context_.device.is_cpu() ? "cpu" : "cuda");
  return what;
}

void Members::save(const Member& member, const Outcome& outcome) const {
  SafeTensors content;
  content.metadata = {
      {"format", kFormat}, {"member", identity(member)}, {"details", outcome.details.dump()}};
  const auto add = [&](const char* name, const std::vector<double>& values) {
    content.tensors.emplace_back(name,
                                 Tensor::from(values, {static_cast<std::int64_t>(values.size())}));
  };
  add("id", outcome.id);
  add("ood", outcome.ood);
  add("cost", {outcome.seconds, outcome.peak_bytes});
  write_safetensors(folder_.path(member.file()).string(), content);
}

std::unique_ptr<Outcome> Members::load(const Member& member) const {
  const std::string path = folder_.path(member.file()).string();
  if (!options_.resume || !std::filesystem::exists(path)) return {};
  SafeTensors content = read_safetensors(path);
  check(content.metadata["format"] == kFormat, kTag, "{}: got format '{}', wanted '{}'", path,
        content.metadata["format"], kFormat);
  check(content.metadata["member"] == identity(member), kTag, "{}: is of '{}', wanted '{}'", path,
        content.metadata["member"], identity(member));
  const auto take = [&](const char* name, std::size_t count) {
    const Tensor* found = content.find(name);
    check(found != nullptr, kTag, "{}: '{}' is missing", path, name);
    std::vector<double> values = found->to_vector<double>();
    check(values.size() == count &&
              std::ranges::all_of(values, [](double v) { return std::isfinite(v); }),
          kTag, "{}: '{}' is {}, wanted {} finite numbers", path, name, found->shape(), count);
    return values;
  };
  const ProteinSplit split = split_protein(protein_, member.seed);
  const std::vector<double> cost = take("cost", 2);
  check(cost[0] >= 0 && cost[1] >= 0 && cost[1] < 1e18, kTag, "{}: got cost {} s and {} bytes",
        path, cost[0], cost[1]);
  Json details = Json::parse(content.metadata["details"], nullptr, false);
  check(details.is_object() && (!member.is_kernel() || details.contains("bound")), kTag,
        "{}: its details are no JSON object{}", path, member.is_kernel() ? " with a bound" : "");
  return std::make_unique<Outcome>(Outcome{take("id", split.id.size()),
                                           take("ood", split.ood.size()), cost[0], cost[1],
                                           std::move(details)});
}

bool Members::train(const Member& member, const ProteinSplit& split,
                    const std::function<void(std::int64_t)>& progress, Outcome& outcome) const {
  const Examples training = examples_at(protein_.rows, split.train);
  const Standardiser standardiser(parse_standardise(member.recipe.standardise), training);
  Net net = make_net(member, training.features, context_.device);
  TrainOptions options;
  options.epochs = member.epochs;
  options.optimiser = AdamOptions{kLearningRate};
  options.progress = [&](const Progress& at) { progress(at.epochs_done); };
  options.stop = stop_;
  options.checkpoint = folder_.path(member.file() + ".unfinished").string();
  options.resume = options_.resume && std::filesystem::exists(options.checkpoint);
  const TrainReport report =
      keel::train(net, to_tensor(standardiser.x(training), training.features, context_.device),
                  to_tensor(standardiser.y(training), 1, context_.device), options);
  if (report.interrupted) return false;
  outcome.seconds = report.seconds_before;
  outcome.id = predict(net, standardiser, examples_at(protein_.rows, split.id));
  outcome.ood = predict(net, standardiser, examples_at(protein_.rows, split.ood));
  outcome.details = {{"train_mse", report.losses.to_vector<double>().back() *
                                       standardiser.y_scale() * standardiser.y_scale()}};
  return true;
}

std::unique_ptr<Outcome> Members::run(const Member& member,
                                      const std::function<void(std::int64_t)>& progress) const {
  const auto begin = std::chrono::steady_clock::now();
  const ProteinSplit split = split_protein(protein_, member.seed);
  Outcome outcome;
  reset_peak(context_.device);
  if (member.is_net()) {
    if (!train(member, split, progress, outcome)) return {};
  } else if (member.is_kernel()) {
    try {
      outcome = solve_kernel(member, protein_, split, options_, context_, stop_);
    } catch (const Interrupted&) {
      return {};
    }
  } else {
    const Boosting trees(examples_at(protein_.rows, split.train));
    outcome.id = trees.predict(examples_at(protein_.rows, split.id));
    outcome.ood = trees.predict(examples_at(protein_.rows, split.ood));
    outcome.details = {{"version", boosting_version()}};
  }
  outcome.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (member.method != "xgboost")
    outcome.peak_bytes = static_cast<double>(memory_stats(context_.device).peak_in_use);
  save(member, outcome);
  std::error_code ignored;
  std::filesystem::remove(folder_.path(member.file() + ".unfinished"), ignored);
  return std::make_unique<Outcome>(std::move(outcome));
}

}  // namespace keel
