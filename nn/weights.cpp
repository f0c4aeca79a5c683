#include "weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace keel {
namespace {

constexpr const char* kNetKey = "keel.net";  // a SPEC

// Of the net's parameters, in layout order: "2.weight", or by the module of that layer.
std::vector<std::string> parameter_names(const Net& net, const std::vector<std::string>& modules) {
  std::vector<std::string> names;
  std::string last;
  std::size_t layers = 0;
  for (const auto& entry : net.layout().entries()) {
    const std::size_t dot = entry.name.find('.');
    const std::string layer = entry.name.substr(0, dot);
    layers += layer != last;
    last = layer;
    names.push_back((layers <= modules.size() ? modules[layers - 1] : layer) +
                    entry.name.substr(dot));
  }
  check(modules.empty() || layers == modules.size(), "weights",
        "got {} modules '{}', wanted one for each of the {} layers of '{}' that have weights",
        modules.size(), fmt::join(modules, " "), layers, spec_text(net.spec()));
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

// The layer is there, and was made without a bias: save_weights() leaves none out.
bool lacks_bias(const SafeTensors& content, const std::string& name) {
  constexpr std::string_view kBias = "bias";
  return name.ends_with(kBias) && !content.metadata.contains(name) &&
         !content.metadata.contains(kNetKey) &&
         content.find(name.substr(0, name.size() - kBias.size()) + "weight");
}

// What may help, or nothing.
std::string hint(const SafeTensors& content, const std::string& name, bool by_number,
                 const std::set<std::string>& left, const Spec& spec) {
  if (lacks_bias(content, name)) return "; without a bias a layer has another kernel";
  if (const auto shared = content.metadata.find(name); shared != content.metadata.end())
    return fmt::format("; it shares '{}', perhaps transposed: wanted its numbers",
                       shown(shared->second));
  if (!by_number) return "";
  if (has_more_layers(left, spec))
    return "; a layer without weights, as Dropout, is the word 'identity'";
  const bool numbers = std::any_of(left.begin(), left.end(), [](const std::string& other) {
    return other[0] >= '0' && other[0] <= '9';
  });
  return numbers || left.empty() ? "" : "; names that are no numbers are given by --modules";
}

}  // namespace

void save_weights(const Net& net, const std::string& path,
                  const std::map<std::string, std::string>& notes) {
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

std::vector<std::string> load_weights(Net& net, const std::string& path,
                                      const LoadOptions& options) {
  const std::vector<std::string> names = parameter_names(net, options.modules);
  const SafeTensors content = read_weights(path, options.modules);
  std::set<std::string> left = content.names();
  std::vector<std::string> zeros;
  Tensor flat = net.flat().to(Device::cpu()).clone();
  for (std::int64_t s = 0; s < net.members(); ++s)
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p) {
      const auto& entry = net.layout().entries()[p];
      const std::string name = name_in_file(net, names[p], s);
      const std::string place = place_of(content, name);
      const Tensor* found = content.find(place);
      if (!found && options.missing_bias == MissingBias::zero && lacks_bias(content, name)) {
        fill(net.layout().member_view(flat, p, s), 0);
        if (std::find(zeros.begin(), zeros.end(), name) == zeros.end()) zeros.push_back(name);
        continue;
      }
      if (!found)
        fail("weights", "{}: '{}' {} is missing; not used so far: {}{}", path, name, entry.member,
             quoted(left), hint(content, name, options.modules.empty(), left, net.spec()));
      check<ShapeError>(found->shape() == entry.member, "weights",
                        "{}: '{}' has shape {}, wanted {}", path, name, found->shape(),
                        entry.member);
      check(entry.scale != 0, "weights",
            "{}: '{}' has no effect in the NTK parameterisation with sigma_b2 = 0, wanted > 0",
            path, name);
      check_finite(*found, path, name);
      const Tensor values = scaled(*found, 1 / entry.scale, net.flat().dtype());
      check_finite(values, path, name);  // a float64 may be too large for the net's float32
      copy(net.layout().member_view(flat, p, s), values);
      left.erase(place);
    }
  check(left.empty(), "weights", "{}: got {} too, which '{}' does not have", path, quoted(left),
        spec_text(net.spec()));
  // Activations and eps have no tensors.
  const auto written = content.metadata.find(kNetKey);
  check(written == content.metadata.end() || written->second == spec_text(net.spec()), "weights",
        "{} holds the weights of '{}', wanted those of '{}'", path,
        written == content.metadata.end() ? "" : shown(written->second), spec_text(net.spec()));
  copy(net.flat(), flat);
  return zeros;
}

}  // namespace keel
