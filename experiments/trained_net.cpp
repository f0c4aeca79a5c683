#include "trained_net.h"

#include <algorithm>

#include "../nn/batch_norm_fold.h"
#include "../nn/checkpoint.h"
#include "../nn/weights.h"
#include "../nn/weights_reader.h"
#include "feature_names.h"
#include "hold_out.h"
#include "net_inputs.h"
#include "standardiser.h"

namespace keel {
namespace {

// Features of the first dense layer, from its weight.
std::int64_t input_width(const Spec& spec, const SafeTensors& file, const std::string& path,
                         const std::vector<std::string>& modules) {
  const SafeTensors content = by_layer_names(file, path, modules);
  const auto layer = static_cast<std::size_t>(
      std::find_if(spec.begin(), spec.end(),
                   [](const LayerSpec& word) { return word.kind == LayerKind::dense; }) -
      spec.begin());
  const std::string name = layer_names(spec, modules)[layer] + ".weight";
  check(content.find("member0." + name) == nullptr, "weights",
        "{} holds an ensemble, wanted one net: --member S, or keel train --seeds 1", path);
  const ParameterInFile first = find_parameter(content, name);
  if (!first.tensor) {
    std::set<std::string> all = file.names();  // whole
    all.insert(file.left_out.begin(), file.left_out.end());
    fail("weights", "{} has no '{}' but {}; {}", path, name, quoted(all),
         modules.empty()
             ? "wanted a torch.nn.Sequential's names, where a layer without weights, "
               "as Flatten, is the word 'identity'; or name the modules: --modules"
             : fmt::format("wanted its names in --modules, without '{}'",
                           library_of(file) == Library::pytorch ? ".weight" : "/kernel"));
  }
  const std::int64_t width = spec[layer].width;
  const Shape& shape = first.tensor->shape();
  const std::int64_t out = first.transposed ? 1 : 0;
  check<ShapeError>(
      shape.rank() == 2 && shape[out] == width && shape[1 - out] > 0, "weights",
      "{}: '{}' has shape {}, wanted {}", path, first.name, shape,
      first.transposed ? fmt::format("[inputs, {}]", width) : fmt::format("[{}, inputs]", width));
  return shape[1 - out];
}

// What a word of SPEC leaves to PyTorch and another library has otherwise: the word as it is there.
// Keras's activation "leaky_relu" has a slope of its own.
struct Default {
  LayerKind kind;
  bool (*left)(const LayerSpec& word);
  const char *flax, *keras;
};

constexpr Default kDefaults[] = {
    {LayerKind::layernorm, [](const LayerSpec& word) { return word.eps == default_eps(word.kind); },
     "layernorm(eps=1e-6)", "layernorm(eps=1e-3)"},
    {LayerKind::rmsnorm, [](const LayerSpec& word) { return word.eps == default_eps(word.kind); },
     "rmsnorm(eps=1e-6)", "rmsnorm(eps=1e-6)"},
    {LayerKind::batchnorm, [](const LayerSpec& word) { return word.eps == default_eps(word.kind); },
     nullptr, "batchnorm(eps=1e-3)"},
    {LayerKind::leakyrelu,
     [](const LayerSpec& word) { return word.slope == default_slope(word.kind); }, nullptr,
     "leakyrelu(slope=0.3), or 0.2 of \"leaky_relu\""},
    {LayerKind::gelu, [](const LayerSpec& word) { return !word.by_tanh; }, "gelu(tanh=1)", nullptr},
};

// Of a file with another library's names; or nothing.
std::string note_of_defaults(const Spec& spec, Library library) {
  const auto words = [&](const char* Default::*of) {
    std::vector<std::string> result;
    for (const Default& other : kDefaults)
      if (other.*of && std::any_of(spec.begin(), spec.end(), [&](const LayerSpec& word) {
            return word.kind == other.kind && other.left(word);
          }))
        result.push_back(other.*of);
    return result;
  };
  const std::vector<std::string> flax = library == Library::keras ? std::vector<std::string>()
                                                                  : words(&Default::flax),
                                 keras = library == Library::flax ? std::vector<std::string>()
                                                                  : words(&Default::keras);
  if (library == Library::pytorch || (flax.empty() && keras.empty())) return "";
  std::string text;
  if (!flax.empty()) text += fmt::format("{} in Flax", fmt::join(flax, ", "));
  if (!keras.empty())
    text += fmt::format("{}{} in Keras", text.empty() ? "" : "; ", fmt::join(keras, ", "));
  return text;
}

std::string member_name(std::int64_t s) { return fmt::format("member{}.", s); }

}  // namespace

std::string net_of(const std::string& given, const SafeTensors& file, const std::string& path) {
  check(!is_checkpoint(file), "weights",
        "{} is the checkpoint of a training, wanted weights: keel train --resume --save-weights "
        "FILE writes them",
        path);
  if (!given.empty()) return given;
  const auto written = file.metadata.find(kNetKey);
  if (written == file.metadata.end())
    throw UsageError("usage",
                     fmt::format("--net is required: {} does not say what it is of", path));
  return written->second;
}

std::int64_t members_of(const SafeTensors& file) {
  std::int64_t members = 0;
  const std::set<std::string> names = file.names();
  const auto has = [&](std::int64_t s) {
    const std::string ahead = member_name(s);
    const auto at = names.lower_bound(ahead);
    return at != names.end() && at->starts_with(ahead);
  };
  while (has(members)) ++members;
  return std::max<std::int64_t>(members, 1);
}

SafeTensors member_of(const SafeTensors& file, std::int64_t s, const std::string& path) {
  const std::int64_t members = members_of(file);
  check(s >= 0 && s < members, "weights", "{}: got member {}, wanted one of its {}, from 0", path,
        s, members);
  SafeTensors one;
  one.metadata = file.metadata;
  one.left_out = file.left_out;
  const std::string ahead = members > 1 ? member_name(s) : "";
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with(ahead)) one.tensors.emplace_back(name.substr(ahead.size()), tensor);
  return one;
}

TrainedNet trained_net(const Spec& spec, const SafeTensors& file, const std::string& path,
                       const std::vector<std::string>& modules, const std::string& standardise,
                       const Context& context) {
  const auto written = file.metadata.find(kStandardiseKey);
  // Units that the net was not trained in would make another function of it.
  if (!standardise.empty() && written != file.metadata.end())
    check(written->second == standardise, "weights",
          "{} is of a net that keel trained with --standardise {}, got {}", path,
          shown(written->second), standardise);

  NetOptions options;
  options.dtype = DType::f64;  // the search is to see the net, not float32's rounding
  options.device = context.device;
  batch_norm_folds(spec);  // throws where the SPEC without its batchnorms would be another net
  TrainedNet result{Net(without_batch_norms(spec), input_width(spec, file, path, modules), options),
                    {}};
  result.columns = metadata_of(file, kColumnsKey);
  result.features = metadata_of(file, kFeaturesKey);
  result.held_out = metadata_of(file, kHeldOutKey);
  std::vector<std::string> missing =
      load_weights(result.net, file, path, {MissingBias::zero, modules, spec});
  const auto gains =
      std::stable_partition(missing.begin(), missing.end(),
                            [](const std::string& name) { return own_name(name) == "bias"; });
  result.zero_biases.assign(missing.begin(), gains);
  const Library library = library_of(file);
  if (!result.zero_biases.empty())
    context.note(fmt::format(
        "note: {} has no {}: taken as zeros, as {}", path, fmt::join(result.zero_biases, ", "),
        library == Library::pytorch
            ? "PyTorch's bias=False means; not so of a torch.nn.RMSNorm, which is the word "
              "'rmsnorm', or where the writer left out what two layers share"
            : "use_bias=False, or of a norm center=False, means"));
  if (gains != missing.end())
    context.note(
        fmt::format("note: {} has no gain {}: taken as ones, as a norm's scale=False means", path,
                    fmt::join(gains, missing.end(), ", ")));
  if (const std::string words = note_of_defaults(spec, library); !words.empty())
    context.note(
        fmt::format("note: {} has another library's names: unless its layers were told otherwise, "
                    "SPEC wants {}",
                    path, words));
  if (standardise.empty() && result.columns.empty() && written != file.metadata.end() &&
      written->second != "none")
    context.note(
        fmt::format("note: {} is of a net that keel trained with --standardise {}: without --data "
                    "these are that table's standardised units",
                    path, shown(written->second)));
  return result;
}

std::vector<TrainedNet> trained_nets(const Spec& spec, const SafeTensors& file,
                                     const std::string& path,
                                     const std::vector<std::string>& modules,
                                     const std::string& standardise, const Context& context) {
  std::vector<TrainedNet> nets;
  Context once = context;
  for (std::int64_t s = 0; s < members_of(file); ++s, once.options.quiet = true)
    nets.push_back(trained_net(spec, member_of(file, s, path), path, modules, standardise, once));
  return nets;
}

Net ensemble_of(const std::vector<TrainedNet>& nets) {
  const Net& first = nets[0].net;
  NetOptions options = first.options();
  options.members = std::ssize(nets);
  options.seeds.clear();
  Net all(first.spec(), first.input_width(), options);
  for (std::size_t s = 0; s < nets.size(); ++s)
    all.set_member(static_cast<std::int64_t>(s), nets[s].net);
  return all;
}

}  // namespace keel
