#include "weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "batch_norm_fold.h"
#include "weights_reader.h"

namespace keel {
namespace {

bool has_weights(const LayerSpec& layer) {
  return layer.kind == LayerKind::dense || layer.kind == LayerKind::prelu ||
         layer.kind == LayerKind::batchnorm || (normalises_rows(layer.kind) && layer.affine);
}

// Of the net's parameters, in layout order: "2.weight", or by the module of that layer. `layers`
// are the names of the file's, batchnorms among them.
std::vector<std::string> parameter_names(const Net& net, const Spec& spec,
                                         const std::vector<std::string>& layers) {
  std::vector<std::string> names;
  for (std::size_t i = 0, own = 0; i < spec.size(); ++i) {
    if (spec[i].kind == LayerKind::batchnorm) continue;
    for (std::size_t p = net.first_parameter(own); p < net.first_parameter(own + 1); ++p) {
      const std::string& entry = net.layout().entries()[p].name;
      names.push_back(layers[i] + entry.substr(entry.rfind('.')));
    }
    ++own;
  }
  return names;
}

std::string name_in_file(const Net& net, const std::string& parameter, std::int64_t s) {
  return net.members() > 1 ? fmt::format("member{}.{}", s, parameter) : parameter;
}

// x times `factor` in double, on the CPU, in the net's dtype.
Tensor scaled(const Tensor& x, double factor, DType dtype) {
  if (factor == 1) return x.to(Device::cpu()).to(dtype);
  std::vector<double> values = x.to_vector<double>();
  for (double& value : values) value *= factor;
  return Tensor::from(values, x.shape()).to(dtype);
}

// Of a parameter whose scale is 0: zeros, as save_weights writes it.
void check_without_effect(const Tensor& values, const std::string& path, const std::string& name) {
  const std::vector<double> all = values.to_vector<double>();
  const auto bad = std::find_if(all.begin(), all.end(), [](double value) { return value != 0; });
  check(bad == all.end(), "weights",
        "{}: element {} of '{}' is {}, and '{}' has no effect in the NTK parameterisation with "
        "sigma_b2 = 0: wanted zeros, or sigma_b2 > 0",
        path, bad - all.begin(), name, bad == all.end() ? 0 : *bad, name);
}

// What a file lacks, and may.
struct Missing {
  bool allowed;
  std::vector<std::string> names;

  // `name` is of a vector: no layer is without its matrix.
  bool lacks(const WeightsReader& reader, const std::string& name) {
    if (!allowed || !(reader.lacks_bias(name) || reader.lacks_gain(name))) return false;
    const std::string there = reader.shown_name(name);
    if (std::find(names.begin(), names.end(), there) == names.end()) names.push_back(there);
    return true;
  }
};

// As torch.nn.BatchNorm1d's state_dict has it.
UnitMap take_batch_norm(WeightsReader& reader, const std::string& name, const LayerSpec& layer,
                        std::int64_t units, const std::string& path, Missing& missing) {
  const auto take = [&](std::string_view what) {
    return reader.take(name + std::string(what), {units}).to_vector<double>();
  };
  const std::vector<double> mean = take(WeightsReader::kRunningMean),
                            variance = take(".running_var");
  // W mean becomes a bias of 53 bits: off by some 1e-16 kFarthest of what W (x - mean) is, a tenth
  // of a certificate's margin. (Unless that bias cancels the batchnorm's own: what is proved is of
  // the folded weights.)
  constexpr double kFarthest = 1e6;
  for (std::size_t j = 0; j < variance.size(); ++j) {
    check(
        variance[j] >= 0 && variance[j] + layer.eps > 0, "weights",
        "{}: element {} of '{}.running_var' is {}, wanted a variance which is above 0 with eps {}",
        path, j, name, variance[j], layer.eps);
    const double deviations = std::abs(mean[j]) / std::sqrt(variance[j] + layer.eps);
    check(deviations <= kFarthest, "weights",
          "{}: element {} of '{}.running_mean' is {}, {:.3g} deviations from 0, wanted at most {}: "
          "folded into weights of 53 bits it would be another function",
          path, j, name, mean[j], deviations, kFarthest);
  }
  std::vector<double> gain, bias;
  if (layer.affine) {
    // PyTorch's has both or neither.
    const bool may_lack = reader.of_another_library();
    if (!(may_lack && missing.lacks(reader, name + ".weight"))) gain = take(".weight");
    if (!(may_lack && missing.lacks(reader, name + ".bias"))) bias = take(".bias");
  }
  reader.leave(name + ".num_batches_tracked");
  return batch_norm_map(mean, variance, layer.eps, gain, bias);
}

}  // namespace

void save_weights(const Net& net, const std::string& path,
                  const std::map<std::string, std::string>& notes) {
  net.check_rows_apart("weights");  // statistics would be missing
  SafeTensors content;
  for (const auto& [key, text] : notes) content.metadata[key] = text;
  content.metadata["format"] = "pt";  // what PyTorch's own readers look for
  content.metadata[kNetKey] = spec_text(net.spec());
  for (std::int64_t s = 0; s < net.members(); ++s)
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      content.tensors.emplace_back(name_in_file(net, net.layout().entries()[p].name, s),
                                   scaled(net.layout().member_view(net.flat(), p, s),
                                          net.layout().entries()[p].scale, net.flat().dtype()));
  write_safetensors(path, content);
}

std::vector<std::string> layer_names(const Spec& spec, const std::vector<std::string>& modules) {
  const auto weights =
      static_cast<std::size_t>(std::count_if(spec.begin(), spec.end(), has_weights));
  check(modules.empty() || modules.size() == weights, "weights",
        "got {} modules '{}', wanted one for each of the {} layers of '{}' that have weights",
        modules.size(), fmt::join(modules, " "), weights, spec_text(spec));
  std::vector<std::string> names;
  auto next = modules.begin();
  for (std::size_t i = 0; i < spec.size(); ++i) {
    names.push_back(has_weights(spec[i]) && next != modules.end() ? *next++ : number_of(spec, i));
  }
  return names;
}

std::vector<std::string> load_weights(Net& net, const std::string& path,
                                      const LoadOptions& options) {
  return load_weights(net, read_weights(path), path, options);
}

std::vector<std::string> load_weights(Net& net, const SafeTensors& file, const std::string& path,
                                      const LoadOptions& options) {
  const Spec& spec = options.spec.empty() ? net.spec() : options.spec;
  check(without_batch_norms(spec) == net.spec(), "weights",
        "got a net of '{}' for weights of '{}', wanted one of '{}'", spec_text(net.spec()),
        spec_text(spec), spec_text(without_batch_norms(spec)));
  const std::vector<std::string> layers = layer_names(spec, options.modules);
  const std::vector<std::string> names = parameter_names(net, spec, layers);
  const std::vector<BatchNormFold> folds = batch_norm_folds(spec);
  WeightsReader reader(file, path, spec, options.modules);
  Missing missing{options.missing_bias == MissingBias::zero, {}};
  Tensor flat = net.flat().to(Device::cpu()).clone();
  for (std::int64_t s = 0; s < net.members(); ++s) {
    for (std::size_t p = 0; p < names.size(); ++p) {
      const auto& entry = net.layout().entries()[p];
      const std::string name = name_in_file(net, names[p], s);
      if (entry.member.rank() == 1 && missing.lacks(reader, name)) {
        const bool gain = reader.lacks_gain(name);
        fill(net.layout().member_view(flat, p, s), gain ? 1 / entry.scale : 0);
        continue;
      }
      const Tensor found = reader.take(name, entry.member);
      if (entry.scale == 0) {
        check_without_effect(found, path, name);
        fill(net.layout().member_view(flat, p, s), 0);
        continue;
      }
      const Tensor values = scaled(found, 1 / entry.scale, net.flat().dtype());
      check_finite_weights(values, path, name);  // a float64 may be too large for the net's float32
      copy(net.layout().member_view(flat, p, s), values);
    }
    for (const BatchNormFold& fold : folds)
      fold_into(net, flat, s, fold,
                take_batch_norm(reader, name_in_file(net, layers[fold.layer], s), spec[fold.layer],
                                units_of(net, fold), path, missing));
  }
  reader.finish();
  copy(net.flat(), flat);
  return missing.names;
}

}  // namespace keel
