#include "weights_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "../kernels/transpose.h"

namespace keel {
namespace {

constexpr std::string_view kWeight = ".weight", kBias = ".bias";

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
  const bool slope = shape == Shape{1} && values.rank() == 0;  // Flax's of a PReLU
  check<ShapeError>(slope || values.shape() == found.shape_of(shape), "weights",
                    "{}: '{}' has shape {}, wanted {}{}", path_, found.name, values.shape(),
                    found.shape_of(shape),
                    shape == Shape{1} && values.rank() == 1 && name.ends_with(kWeight)
                        ? "; a PReLU with a slope for each unit is the word 'prelu(per_unit=1)'"
                        : "");
  check_finite_weights(values, path_, found.name);
  left_.erase(found.name);
  if (values.rank() != shape.rank()) return values.reshape(shape);
  return found.transposed && values.rank() == 2 ? transpose(values).value() : values;
}

bool WeightsReader::has(const std::string& name) const {
  return find_parameter(content_, name).tensor != nullptr;
}

bool WeightsReader::lacks_bias(const std::string& name) const {
  return name.ends_with(kBias) && !has(name) && !content_.metadata.contains(name) &&
         !content_.metadata.contains(kNetKey) && has(module_of(name) + std::string(kWeight));
}

bool WeightsReader::lacks_gain(const std::string& name) const {
  return name.ends_with(kWeight) && !has(name) && of_another_library() &&
         has(module_of(name) + std::string(kBias));
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
    const bool by_name = own == "alpha" || own == "negative_slope";
    if (by_name || (name.ends_with(kWeight) && found && found->shape() == Shape{1}))
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
    return name.ends_with(kWeight)
               ? "; a BatchNorm1d with affine=False is the word 'batchnorm(affine=0)'"
               : "";
  if (lacks_bias(name)) return "; without a bias a layer has another kernel";
  if (const auto shared = content_.metadata.find(name); shared != content_.metadata.end())
    return fmt::format("; it shares '{}', perhaps transposed: wanted its numbers",
                       shown(shared->second));
  if (name.ends_with(kRunningMean) && has(stem + std::string(kWeight)))
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

}  // namespace keel
