#include "kernel_choice.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <sstream>

#include "../nn/parameter_names.h"
#include "../nn/transformer_weights.h"
#include "../nn/weights.h"
#include "trained_net.h"

namespace keel {
namespace {

Parameterisation parameterisation_of(const KernelChoice& choice) {
  return choice.parameterisation == "ntk" ? Parameterisation::ntk : Parameterisation::standard;
}

// Throws UsageError where options contradict each other.
void check_kernel(const KernelChoice& choice) {
  if (!choice.modules.empty() && choice.weights.empty())
    throw UsageError("usage", "--modules names the layers of --weights, which is not given");
  if (!choice.infinite()) {
    if (choice.seeds > 1 && !choice.weights.empty())
      throw UsageError("usage", "got --seeds and --weights, wanted one of them");
    return;
  }
  if (choice.seeds > 1 || !choice.weights.empty())
    throw UsageError("usage",
                     "--seeds and --weights are for --mode empirical: the infinite-width "
                     "kernel has no weights");
}

}  // namespace

void declare_kernel(CLI::App& app, KernelChoice& choice, const std::string& dtypes) {
  app.add_option("--net", choice.net,
                 "SPEC: \"dense(128) layernorm relu dense(1)\" (default: what --weights of keel "
                 "train says)");
  std::string modes = "infinite: the limit of wide nets; empirical: of nets with the SPEC's widths";
  std::vector<std::string> names = {"infinite", "empirical"};
  if (choice.may_be_trained) {
    modes += "; trained: no kernel, the net of --weights itself";
    names.push_back("trained");
  }
  app.add_option("--mode", choice.mode, modes)->check(one_of(names))->capture_default_str();
  app.add_option("--param", choice.parameterisation,
                 "parameterisation, which scales the kernel: ntk or standard")
      ->check(one_of({"ntk", "standard"}))
      ->capture_default_str();
  app.add_option("--dtype", choice.dtype, dtypes)
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--sigma-w2", choice.sigma_w2, "weight variance times fan-in, of dense layers")
      ->check(check_positive)
      ->capture_default_str();
  app.add_option("--first-sigma-w2", choice.first_sigma_w2, "the same of the first dense layer")
      ->check(check_positive);
  app.add_option("--sigma-b2", choice.sigma_b2, "bias variance")
      ->check(check_not_negative)
      ->capture_default_str();
  app.add_option("--seeds", choice.seeds,
                 "empirical: the mean kernel of nets from seeds --seed, --seed + 1, ...")
      ->check(check_whole(1, 100000))
      ->capture_default_str();
  app.add_option("--weights", choice.weights,
                 choice.may_be_trained ? "empirical, trained: of this net, a .safetensors file"
                                       : "empirical: of this net, a .safetensors file");
  app.add_option("--modules", choice.modules,
                 "what --weights calls the layers that have weights, in SPEC's order: \"fc1 norm "
                 "fc2\" of fc1.weight, ... (default: their numbers)")
      ->check([](const std::string& text) {
        return text.find_first_not_of(" \t") == text.npos ? "got no words" : "";
      });
}

std::vector<std::string> modules_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::optional<SafeTensors> completed(KernelChoice& choice) {
  check_kernel(choice);
  if (choice.weights.empty()) {
    if (choice.net.empty()) throw UsageError("usage", "--net is required");
    return std::nullopt;
  }
  SafeTensors file = read_weights(choice.weights);
  check(!is_transformer(file), "empirical_kernel",
        "{} is of transformers, wanted weights of one net of a SPEC", choice.weights);
  const std::int64_t members = members_of(file);
  check(members == 1, "empirical_kernel",
        "{} holds an ensemble of {} nets, wanted one net: of keel train --seeds 1", choice.weights,
        members);
  choice.net = net_of(choice.net, file, choice.weights);
  return file;
}

Net make_net(const KernelChoice& choice, std::int64_t input_width,
             const std::optional<SafeTensors>& weights, const Context& context) {
  NetOptions options;
  options.parameterisation = parameterisation_of(choice);
  options.members = choice.seeds;
  options.seed = context.options.seed;
  options.dtype = choice.element();
  options.device = context.device;
  options.sigma_w2 = choice.sigma_w2;
  options.first_sigma_w2 = choice.first_sigma_w2;
  options.sigma_b2 = choice.sigma_b2;
  Net net(choice.net, input_width, options);
  check(!net.mixes_rows(), "empirical_kernel",
        "got '{}', wanted a net without batchnorm: its statistics are of many rows, a kernel is of "
        "two inputs alone",
        spec_text(net.spec()));
  if (weights) load_weights(net, *weights, choice.weights, {.modules = modules_of(choice.modules)});
  return net;
}

std::shared_ptr<const InfiniteKernel> make_infinite(const KernelChoice& choice,
                                                    std::int64_t input_width,
                                                    const Context& context, KernelOutput output) {
  InfiniteKernelOptions options;
  options.parameterisation = parameterisation_of(choice);
  options.sigma_w2 = choice.sigma_w2;
  options.first_sigma_w2 = choice.first_sigma_w2;
  options.sigma_b2 = choice.sigma_b2;
  options.device = context.device;
  return std::make_shared<InfiniteKernel>(choice.net, input_width, options, output);
}

std::shared_ptr<const Kernel> make_kernel(const KernelChoice& choice, std::int64_t input_width,
                                          const std::optional<SafeTensors>& weights,
                                          const Context& context) {
  if (choice.infinite()) return make_infinite(choice, input_width, context);
  return std::make_shared<EmpiricalKernel>(make_net(choice, input_width, weights, context));
}

Json kernel_json(const KernelChoice& choice, const Context& context) {
  Json json = {{"net", spec_text(parse_spec(choice.net))},
               {"mode", choice.mode},
               {"parameterisation", choice.parameterisation},
               {"dtype", choice.dtype},
               {"sigma_w2", choice.sigma_w2},
               {"first_sigma_w2", choice.first_sigma_w2.value_or(choice.sigma_w2)},
               {"sigma_b2", choice.sigma_b2}};
  if (choice.infinite()) return json;
  if (choice.weights.empty()) {
    json["seeds"] = choice.seeds;
    json["first_seed"] = context.options.seed;
  } else {
    json["weights"] = choice.weights;
    if (!choice.modules.empty()) json["modules"] = modules_of(choice.modules);
  }
  return json;
}

}  // namespace keel
