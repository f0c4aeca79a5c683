#include "trained_net.h"

#include <algorithm>

#include "../nn/batch_norm_fold.h"
#include "../nn/weights.h"
#include "../nn/weights_reader.h"
#include "examples.h"

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
  check(content.find("member0." + name) == nullptr, "certify",
        "{} holds an ensemble, wanted one net: keel train --seeds 1", path);
  const ParameterInFile first = find_parameter(content, name);
  if (!first.tensor) {
    std::set<std::string> all = file.names();  // whole
    all.insert(file.left_out.begin(), file.left_out.end());
    fail("certify", "{} has no '{}' but {}; {}", path, name, quoted(all),
         modules.empty() ? "wanted a torch.nn.Sequential's names, where a layer without weights, "
                           "as Flatten, is the word 'identity'; or name the modules: --modules"
                         : "wanted its names in --modules, without '.weight'");
  }
  const std::int64_t width = spec[layer].width;
  const Shape& shape = first.tensor->shape();
  const std::int64_t out = first.transposed ? 1 : 0;
  check<ShapeError>(
      shape.rank() == 2 && shape[out] == width && shape[1 - out] > 0, "certify",
      "{}: '{}' has shape {}, wanted {}", path, first.name, shape,
      first.transposed ? fmt::format("[inputs, {}]", width) : fmt::format("[{}, inputs]", width));
  return shape[1 - out];
}

// A norm whose gain another library named, and whose eps the SPEC leaves to PyTorch; or nothing.
std::string eps_of_another(const Spec& spec, const SafeTensors& file) {
  const auto names = file.names();
  const bool elsewhere = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with("scale") || name.ends_with("gamma");
  });
  const auto norm = std::find_if(spec.begin(), spec.end(), [](const LayerSpec& word) {
    return normalises_rows(word.kind) && word.eps == default_eps(word.kind);
  });
  return elsewhere && norm != spec.end() ? name_of(norm->kind) : "";
}

}  // namespace

SafeTensors read_tail(const std::string& path, const std::vector<std::string>& modules) {
  return read_safetensors(path, [&](const std::string& name) {
    return std::find(modules.begin(), modules.end(), module_of(name)) != modules.end();
  });
}

TrainedNet trained_net(const Spec& spec, const SafeTensors& file, const std::string& path,
                       const std::vector<std::string>& modules, const std::string& standardise,
                       const Context& context) {
  const auto written = file.metadata.find(kStandardiseKey);
  // Units that the net was not trained in would make another function of it.
  if (!standardise.empty() && written != file.metadata.end())
    check(written->second == standardise, "certify",
          "{} is of a net that keel trained with --standardise {}, got {}", path,
          shown(written->second), standardise);

  NetOptions options;
  options.dtype = DType::f64;  // the search is to see the net, not float32's rounding
  options.device = context.device;
  batch_norm_folds(spec);  // throws where the SPEC without its batchnorms would be another net
  TrainedNet result{
      Net(without_batch_norms(spec), input_width(spec, file, path, modules), options), {}, {}};
  if (const auto found = file.metadata.find(kColumnsKey); found != file.metadata.end())
    result.columns = found->second;
  result.zero_biases = load_weights(result.net, file, path, {MissingBias::zero, modules, spec});
  if (!result.zero_biases.empty())
    context.note(fmt::format(
        "note: {} has no {}: taken as zeros, as PyTorch's bias=False means; not so of a "
        "torch.nn.RMSNorm, which is the word 'rmsnorm', or where the writer left out what two "
        "layers share",
        path, fmt::join(result.zero_biases, ", ")));
  if (const std::string norm = eps_of_another(spec, file); !norm.empty())
    context.note(
        fmt::format("note: {} has Flax's or Keras's names, whose norms have an eps of 1e-6 or 1e-3 "
                    "unless told otherwise, and '{}' has PyTorch's: {}(eps=value)",
                    path, norm, norm));
  if (standardise.empty() && written != file.metadata.end() && written->second != "none")
    context.note(
        fmt::format("note: {} is of a net that keel trained with --standardise {}: without --data "
                    "these are that table's standardised units",
                    path, shown(written->second)));
  return result;
}

}  // namespace keel
