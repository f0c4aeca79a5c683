#include "weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "batch_norm_fold.h"

namespace keel {
namespace {

constexpr const char* kNetKey = "keel.net";  // a SPEC

bool has_weights(const LayerSpec& layer) {
  return layer.kind == LayerKind::dense || layer.kind == LayerKind::batchnorm ||
         (normalises_rows(layer.kind) && layer.affine);
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
      names.push_back(layers[i] + entry.substr(entry.find('.')));
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

void check_finite(const Tensor& values, const std::string& path, const std::string& name) {
  const std::vector<double> all = values.to_vector<double>();
  const auto bad =
      std::find_if_not(all.begin(), all.end(), [](double value) { return std::isfinite(value); });
  check(bad == all.end(), "weights", "{}: element {} of '{}' is {} in {}, wanted a finite number",
        path, bad - all.begin(), name, bad == all.end() ? 0 : *bad, name_of(values.dtype()));
}

// "net." of "net.0.weight"; none where no number stands ahead of the parameter.
std::string_view ahead_of_number(std::string_view name) {
  const std::size_t end = name.rfind('.');
  if (end == name.npos) return {};
  const std::size_t before = name.find_last_not_of("0123456789", end - 1);
  const std::size_t begin = before == name.npos ? 0 : before + 1;
  return begin < end && (begin == 0 || name[before] == '.') ? name.substr(0, begin)
                                                            : std::string_view();
}

// Without what all tensors' names begin with, in the notes on shared tensors too.
void strip_common(SafeTensors& content) {
  if (content.tensors.empty()) return;
  const std::string ahead(ahead_of_number(content.tensors[0].first));
  for (const auto& [name, tensor] : content.tensors)
    if (ahead_of_number(name) != ahead) return;
  for (auto& [name, tensor] : content.tensors) name.erase(0, ahead.size());
  std::map<std::string, std::string> notes;
  for (const auto& [key, text] : content.metadata) {
    const std::size_t cut = key.starts_with(ahead) && text.starts_with(ahead) ? ahead.size() : 0;
    notes[key.substr(cut)] = text.substr(cut);
  }
  content.metadata = std::move(notes);
}

// Of tensors that share their memory, safetensors.torch.save_model writes one, and a note of its
// name for each other. A matrix may be the other's transpose, so only vectors are taken.
std::string place_of(const SafeTensors& content, const std::string& name) {
  const auto shared = content.metadata.find(name);
  if (content.find(name) || shared == content.metadata.end()) return name;
  const Tensor* there = content.find(shared->second);
  return there && there->rank() == 1 ? shared->second : name;
}

// A layer behind the SPEC's last one: the file's net has words that the SPEC does not.
bool has_more_layers(const std::set<std::string>& names, const Spec& spec) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    std::int64_t layer = -1;
    std::from_chars(name.data(), name.data() + name.size(), layer);
    return layer >= word_of(spec, spec.size() - 1);
  });
}

constexpr std::string_view kRunningMean = ".running_mean";

// A file's tensors, and the names that nobody has taken yet.
class Reader {
 public:
  Reader(const std::string& path, const Spec& spec, const std::vector<std::string>& modules)
      : path_(path),
        spec_(spec),
        by_number_(modules.empty()),
        content_(read_weights(path, modules)),
        left_(content_.names()) {}

  // Of this shape, all of it finite.
  Tensor take(const std::string& name, const Shape& shape) {
    const std::string place = place_of(content_, name);
    const Tensor* found = content_.find(place);
    if (!found)
      fail("weights", "{}: '{}' {} is missing; not used so far: {}{}", path_, name, shape,
           quoted(left_), hint(name));
    check<ShapeError>(found->shape() == shape, "weights", "{}: '{}' has shape {}, wanted {}", path_,
                      name, found->shape(), shape);
    check_finite(*found, path_, name);
    left_.erase(place);
    return *found;
  }

  // The layer is there, and was made without a bias: save_weights() leaves none out.
  bool lacks_bias(const std::string& name) const {
    constexpr std::string_view kBias = "bias";
    return name.ends_with(kBias) && !content_.find(place_of(content_, name)) &&
           !content_.metadata.contains(name) && !content_.metadata.contains(kNetKey) &&
           content_.find(name.substr(0, name.size() - kBias.size()) + "weight");
  }

  void leave(const std::string& name) { left_.erase(name); }

  // That all was taken, and that keel wrote nothing else of what it is.
  void finish() const {
    check(left_.empty(), "weights", "{}: got {} too, which '{}' does not have{}", path_,
          quoted(left_), spec_text(spec_),
          has_statistics() ? "; running statistics are a Batch Norm's, the word 'batchnorm'" : "");
    // Activations and eps have no tensors.
    const auto written = content_.metadata.find(kNetKey);
    check(written == content_.metadata.end() || written->second == spec_text(spec_), "weights",
          "{} holds the weights of '{}', wanted those of '{}'", path_,
          written == content_.metadata.end() ? "" : shown(written->second), spec_text(spec_));
  }

 private:
  bool has_statistics() const {
    return std::any_of(left_.begin(), left_.end(),
                       [](const std::string& name) { return name.ends_with(kRunningMean); });
  }

  // What may help, or nothing.
  std::string hint(const std::string& name) const {
    const auto written = content_.metadata.find(kNetKey);
    if (written != content_.metadata.end() && written->second != spec_text(spec_))
      return fmt::format("; these are the weights of '{}'", shown(written->second));
    const std::string stem = name.substr(0, name.rfind('.'));
    if (content_.find(stem + std::string(kRunningMean)))
      return name.ends_with(".weight")
                 ? "; a BatchNorm1d with affine=False is the word 'batchnorm(affine=0)'"
                 : "";
    if (lacks_bias(name)) return "; without a bias a layer has another kernel";
    if (const auto shared = content_.metadata.find(name); shared != content_.metadata.end())
      return fmt::format("; it shares '{}', perhaps transposed: wanted its numbers",
                         shown(shared->second));
    if (name.ends_with(kRunningMean) && content_.find(stem + ".weight"))
      return "; without running statistics it depends on its batch, or is another normalisation";
    if (!by_number_) return "";
    if (has_more_layers(left_, spec_))
      return "; a layer without weights, as Dropout, is the word 'identity'";
    const bool numbers = std::any_of(left_.begin(), left_.end(), [](const std::string& other) {
      return other[0] >= '0' && other[0] <= '9';
    });
    return numbers || left_.empty() ? "" : "; names that are no numbers are given by --modules";
  }

  const std::string& path_;
  const Spec& spec_;
  bool by_number_;
  SafeTensors content_;
  std::set<std::string> left_;
};

// As torch.nn.BatchNorm1d's state_dict has it.
UnitMap take_batch_norm(Reader& file, const std::string& name, const LayerSpec& layer,
                        std::int64_t units, const std::string& path) {
  const auto take = [&](std::string_view what) {
    return file.take(name + std::string(what), {units}).to_vector<double>();
  };
  const std::vector<double> mean = take(kRunningMean), variance = take(".running_var");
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
    gain = take(".weight");
    bias = take(".bias");
  }
  file.leave(name + ".num_batches_tracked");
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

std::string quoted(const std::set<std::string>& names) {
  constexpr std::size_t kListed = 30;
  std::string text;
  std::size_t listed = 0;
  for (const std::string& name : names)
    if (++listed <= kListed) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", shown(name));
  if (names.size() > kListed) text += fmt::format(" and {} more", names.size() - kListed);
  return names.empty() ? "none" : text;
}

SafeTensors read_weights(const std::string& path, const std::vector<std::string>& modules) {
  SafeTensors content = read_safetensors(path);
  check(modules.empty() || !content.metadata.contains(kNetKey), "weights",
        "{}: keel wrote it, by layers' numbers; wanted no names of modules", path);
  if (modules.empty()) strip_common(content);
  return content;
}

std::vector<std::string> layer_names(const Spec& spec, const std::vector<std::string>& modules) {
  std::vector<std::string> names;
  std::size_t with_weights = 0;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    const bool named = has_weights(spec[i]) && with_weights < modules.size();
    names.push_back(named ? modules[with_weights] : fmt::to_string(word_of(spec, i) - 1));
    with_weights += has_weights(spec[i]);
  }
  check(modules.empty() || with_weights == modules.size(), "weights",
        "got {} modules '{}', wanted one for each of the {} layers of '{}' that have weights",
        modules.size(), fmt::join(modules, " "), with_weights, spec_text(spec));
  return names;
}

std::vector<std::string> load_weights(Net& net, const std::string& path,
                                      const LoadOptions& options) {
  const Spec& spec = options.spec.empty() ? net.spec() : options.spec;
  check(without_batch_norms(spec) == net.spec(), "weights",
        "got a net of '{}' for weights of '{}', wanted one of '{}'", spec_text(net.spec()),
        spec_text(spec), spec_text(without_batch_norms(spec)));
  const std::vector<std::string> layers = layer_names(spec, options.modules);
  const std::vector<std::string> names = parameter_names(net, spec, layers);
  const std::vector<BatchNormFold> folds = batch_norm_folds(spec);
  Reader file(path, spec, options.modules);
  std::vector<std::string> zeros;
  Tensor flat = net.flat().to(Device::cpu()).clone();
  for (std::int64_t s = 0; s < net.members(); ++s) {
    for (std::size_t p = 0; p < names.size(); ++p) {
      const auto& entry = net.layout().entries()[p];
      const std::string name = name_in_file(net, names[p], s);
      if (options.missing_bias == MissingBias::zero && file.lacks_bias(name)) {
        fill(net.layout().member_view(flat, p, s), 0);
        if (std::find(zeros.begin(), zeros.end(), name) == zeros.end()) zeros.push_back(name);
        continue;
      }
      const Tensor found = file.take(name, entry.member);
      if (entry.scale == 0) {  // as save_weights wrote it, or as bias=False means
        const std::vector<double> given = found.to_vector<double>();
        const auto other =
            std::find_if(given.begin(), given.end(), [](double b) { return b != 0; });
        check(other == given.end(), "weights",
              "{}: element {} of '{}' is {}, and '{}' has no effect in the NTK parameterisation "
              "with sigma_b2 = 0: wanted zeros, or sigma_b2 > 0",
              path, other - given.begin(), name, other == given.end() ? 0 : *other, name);
        fill(net.layout().member_view(flat, p, s), 0);
        continue;
      }
      const Tensor values = scaled(found, 1 / entry.scale, net.flat().dtype());
      check_finite(values, path, name);  // a float64 may be too large for the net's float32
      copy(net.layout().member_view(flat, p, s), values);
    }
    for (const BatchNormFold& fold : folds)
      fold_into(net, flat, s, fold,
                take_batch_norm(file, name_in_file(net, layers[fold.layer], s), spec[fold.layer],
                                units_of(net, fold), path));
  }
  file.finish();
  copy(net.flat(), flat);
  return zeros;
}

}  // namespace keel
