#include "weights_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "../kernels/transpose.h"

namespace keel {
namespace {

// "net." of "net.0.weight"; none where no number stands ahead of the parameter.
std::string_view ahead_of_number(std::string_view name) {
  const std::size_t end = name.rfind('.');
  if (end == name.npos) return {};
  const std::size_t before = name.find_last_not_of("0123456789", end - 1);
  const std::size_t begin = before == name.npos ? 0 : before + 1;
  return begin < end && (begin == 0 || name[before] == '.') ? name.substr(0, begin)
                                                            : std::string_view();
}

// Without what all tensors' names begin with, in the notes on shared tensors too: within a residual
// a layer has two numbers.
void strip_common(SafeTensors& content) {
  if (content.tensors.empty()) return;
  std::string ahead(ahead_of_number(content.tensors[0].first));
  for (const auto& [name, tensor] : content.tensors)
    if (ahead_of_number(name).size() < ahead.size()) ahead = ahead_of_number(name);
  for (const auto& [name, tensor] : content.tensors)
    if (!ahead_of_number(name).starts_with(ahead)) return;
  for (auto& [name, tensor] : content.tensors) name.erase(0, ahead.size());
  std::map<std::string, std::string> notes;
  for (const auto& [key, text] : content.metadata) {
    const std::size_t cut = key.starts_with(ahead) && text.starts_with(ahead) ? ahead.size() : 0;
    notes[key.substr(cut)] = text.substr(cut);
  }
  content.metadata = std::move(notes);
}

// What other libraries call a parameter, behind a dot or a slash.
constexpr struct {
  std::string_view here, elsewhere;
  bool transposed = false;
} kElsewhere[] = {{"weight", "weight"},     {"weight", "kernel", true},
                  {"weight", "scale"},      {"weight", "gamma"},
                  {"bias", "bias"},         {"bias", "beta"},
                  {"running_mean", "mean"}, {"running_mean", "moving_mean"},
                  {"running_var", "var"},   {"running_var", "moving_variance"}};

// "weight" of "fc.weight".
std::string_view own_name(std::string_view name) {
  return name.substr(std::min(name.find_last_of("./") + 1, name.size()));
}

// Of Flax's linen, whose running statistics are apart: "batch_stats.norm" of "params.norm".
std::string module_of_statistics(const std::string& module) {
  constexpr std::string_view kParameters = "params";
  const bool linen = module.starts_with(kParameters) && module.size() > kParameters.size() &&
                     (module[kParameters.size()] == '.' || module[kParameters.size()] == '/');
  return linen ? "batch_stats" + module.substr(kParameters.size()) : module;
}

// Of "2.0.weight": 2 and, within a residual, 0; else -1.
struct Number {
  std::int64_t outer = -1, inner = -1;
  explicit Number(std::string_view name) {
    const char* const end = name.data() + name.size();
    const auto [stop, problem] = std::from_chars(name.data(), end, outer);
    if (problem == std::errc() && stop != end) std::from_chars(stop + 1, end, inner);
  }
};

// A layer behind the SPEC's last one, or, of the residual that `missing` is of, behind that: the
// file's net has words that the SPEC does not.
bool has_more_layers(const std::set<std::string>& names, const Spec& spec,
                     const std::string& missing) {
  const Number last(number_of(spec, spec.size() - 1)), own(missing);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const Number number(name);
    return number.outer > last.outer ||
           (own.inner >= 0 && number.outer == own.outer && number.inner > own.inner);
  });
}

}  // namespace

Shape ParameterInFile::shape_of(const Shape& shape) const {
  return transposed && shape.rank() == 2 ? Shape{shape[1], shape[0]} : shape;
}

ParameterInFile find_parameter(const SafeTensors& content, const std::string& name) {
  if (const Tensor* there = content.find(name)) return {name, there};
  // Of tensors that share their memory, save_model() writes one, and a note of its name for each
  // other. A matrix may be the other's transpose, so only vectors are taken.
  if (const auto shared = content.metadata.find(name); shared != content.metadata.end())
    if (const Tensor* there = content.find(shared->second); there && there->rank() == 1)
      return {shared->second, there};
  const std::string module = module_of(name);
  for (const auto& [here, elsewhere, transposed] : kElsewhere) {
    if (own_name(name) != here) continue;
    for (const std::string& place : {module, module_of_statistics(module)})
      for (const char separator : {'.', '/'}) {
        const std::string other = fmt::format("{}{}{}", place, separator, elsewhere);
        if (const Tensor* there = content.find(other)) return {other, there, transposed};
      }
  }
  return {name};
}

std::string module_of(const std::string& name) { return name.substr(0, name.find_last_of("./")); }

void check_finite_weights(const Tensor& values, const std::string& path, const std::string& name) {
  const std::vector<double> all = values.to_vector<double>();
  const auto bad =
      std::find_if_not(all.begin(), all.end(), [](double value) { return std::isfinite(value); });
  check(bad == all.end(), "weights", "{}: element {} of '{}' is {} in {}, wanted a finite number",
        path, bad - all.begin(), name, bad == all.end() ? 0 : *bad, name_of(values.dtype()));
}

Tensor WeightsReader::take(const std::string& name, const Shape& shape) {
  const ParameterInFile found = find_parameter(content_, name);
  if (!found.tensor) {
    std::set<std::string> unused = left_;
    unused.insert(content_.left_out.begin(), content_.left_out.end());
    fail("weights", "{}: '{}' {} is missing; not used so far: {}{}", path_, name, shape,
         quoted(unused), hint(name));
  }
  const Tensor& values = *found.tensor;
  check<ShapeError>(values.shape() == found.shape_of(shape), "weights",
                    "{}: '{}' has shape {}, wanted {}{}", path_, found.name, values.shape(),
                    found.shape_of(shape),
                    shape == Shape{1} && values.rank() == 1 && name.ends_with(".weight")
                        ? "; a PReLU with a slope for each unit is the word 'prelu(per_unit=1)'"
                        : "");
  check_finite_weights(values, path_, found.name);
  left_.erase(found.name);
  return found.transposed && values.rank() == 2 ? transpose(values).value() : values;
}

bool WeightsReader::has(const std::string& name) const {
  return find_parameter(content_, name).tensor != nullptr;
}

bool WeightsReader::lacks_bias(const std::string& name) const {
  constexpr std::string_view kBias = "bias";
  return name.ends_with(kBias) && !has(name) && !content_.metadata.contains(name) &&
         !content_.metadata.contains(kNetKey) &&
         has(name.substr(0, name.size() - kBias.size()) + "weight");
}

void WeightsReader::finish() const {
  check(left_.empty(), "weights", "{}: got {} too, which '{}' does not have{}", path_,
        quoted(left_), spec_text(spec_), hint());
  // Activations and eps have no tensors.
  const auto written = content_.metadata.find(kNetKey);
  check(written == content_.metadata.end() || written->second == spec_text(spec_), "weights",
        "{} holds the weights of '{}', wanted those of '{}'", path_,
        written == content_.metadata.end() ? "" : shown(written->second), spec_text(spec_));
}

std::string WeightsReader::hint() const {
  for (const std::string& name : left_) {
    const std::string_view own = own_name(name);
    if (own == "running_mean" || own == "moving_mean")
      return "; running statistics are a Batch Norm's, the word 'batchnorm'";
    const Tensor* found = content_.find(name);
    if (name.ends_with(".weight") && found && found->shape() == Shape{1})
      return fmt::format("; '{}' may be a PReLU's slope, the word 'prelu'{}", shown(name),
                         by_number_ ? "" : ", whose module is named like others");
  }
  return "";
}

std::string WeightsReader::hint(const std::string& name) const {
  const auto written = content_.metadata.find(kNetKey);
  if (written != content_.metadata.end() && written->second != spec_text(spec_))
    return fmt::format("; these are the weights of '{}'", shown(written->second));
  const std::string stem = name.substr(0, name.rfind('.'));
  if (has(stem + std::string(kRunningMean)))
    return name.ends_with(".weight")
               ? "; a BatchNorm1d with affine=False is the word 'batchnorm(affine=0)'"
               : "";
  if (lacks_bias(name)) return "; without a bias a layer has another kernel";
  if (const auto shared = content_.metadata.find(name); shared != content_.metadata.end())
    return fmt::format("; it shares '{}', perhaps transposed: wanted its numbers",
                       shown(shared->second));
  if (name.ends_with(kRunningMean) && has(stem + ".weight"))
    return "; without running statistics it depends on its batch, or is another normalisation";
  if (!by_number_) return "";
  if (!has_residual(spec_) && std::any_of(left_.begin(), left_.end(), [](const std::string& other) {
        return Number(other).inner >= 0;
      }))
    return "; layers of two numbers are those of the word 'residual(...)'";
  if (has_more_layers(left_, spec_, name))
    return "; a layer without weights, as Dropout, is the word 'identity'";
  const bool numbers = std::any_of(left_.begin(), left_.end(), [](const std::string& other) {
    return other[0] >= '0' && other[0] <= '9';
  });
  return numbers || left_.empty() ? "" : "; names that are no numbers are given by --modules";
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

SafeTensors by_layer_names(SafeTensors file, const std::string& path,
                           const std::vector<std::string>& modules) {
  check(modules.empty() || !file.metadata.contains(kNetKey), "weights",
        "{}: keel wrote it, by layers' numbers; wanted no names of modules", path);
  if (modules.empty()) strip_common(file);
  return file;
}

}  // namespace keel
