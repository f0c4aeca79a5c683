#include "affine.h"

#include <algorithm>
#include <cmath>

#include "length.h"

namespace keel {

using Vector = std::vector<double>;

namespace {

Vector sizes(Vector values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

}  // namespace

Vector weight_sizes(const Affine& affine) {
  return affine.weight_sizes.empty() ? sizes(affine.weight) : affine.weight_sizes;
}

Vector bias_sizes(const Affine& affine) {
  return affine.bias_sizes.empty() ? sizes(affine.bias) : affine.bias_sizes;
}

Vector output_sizes(const Affine& affine) {
  const Vector of_weights = weight_sizes(affine);
  const auto cols = static_cast<std::size_t>(affine.inputs);
  Vector result = bias_sizes(affine);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] += length_of(&of_weights[i * cols], cols);
  return result;
}

std::vector<Interval> outputs_within(const Affine& affine, const std::vector<Interval>& inputs,
                                     double margin) {
  const Vector sizes = weight_sizes(affine), of_bias = bias_sizes(affine);
  std::vector<Interval> result;
  for (std::size_t i = 0; i < affine.bias.size(); ++i) {
    Interval sum{affine.bias[i], affine.bias[i]};
    double lost = of_bias[i];
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      const Interval& input = inputs[j];
      const double weight = affine.weight[i * inputs.size() + j],
                   size = sizes[i * inputs.size() + j];
      if (weight != 0) {
        sum.low += weight * (weight > 0 ? input.low : input.high);
        sum.high += weight * (weight > 0 ? input.high : input.low);
      }
      if (size != 0) lost += size * std::max(std::abs(input.low), std::abs(input.high));
    }
    result.push_back({sum.low - margin * lost, sum.high + margin * lost});
  }
  return result;
}

Vector affine_at(const Affine& affine, const Vector& x) {
  Vector result = affine.bias;
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) result[i] += affine.weight[i * x.size() + j] * x[j];
  return result;
}

Affine linear_part(Affine map) {
  std::ranges::fill(map.bias, 0);
  map.bias_sizes.clear();
  return map;
}

Affine scaled(Affine map, double factor) {
  for (auto* all : {&map.weight, &map.bias, &map.weight_sizes, &map.bias_sizes})
    for (double& each : *all) each *= factor;
  return map;
}

Affine identity_map(std::int64_t width) { return identities(1, 1, width); }

Affine identities(std::int64_t rows, std::int64_t cols, std::int64_t width) {
  const auto outputs = static_cast<std::size_t>(rows * width),
             inputs = static_cast<std::size_t>(cols * width),
             each = static_cast<std::size_t>(width);
  Affine affine{rows * width, cols * width, Vector(outputs * inputs), Vector(outputs)};
  for (std::size_t i = 0; i < outputs; ++i)
    for (std::size_t j = i % each; j < inputs; j += each) affine.weight[i * inputs + j] = 1;
  return affine;
}

Affine beside_identity(const Affine& map, std::int64_t width) {
  if (width == 0) return map;
  Affine result{map.outputs + width, map.inputs + width, {}, map.bias};
  result.bias.resize(static_cast<std::size_t>(result.outputs));
  const auto inputs = static_cast<std::size_t>(map.inputs),
             outputs = static_cast<std::size_t>(map.outputs),
             all = static_cast<std::size_t>(result.inputs);
  result.weight.resize(result.bias.size() * all);
  for (std::size_t i = 0; i < outputs; ++i)
    std::copy_n(&map.weight[i * inputs], inputs, &result.weight[i * all]);
  for (std::size_t i = outputs; i < result.bias.size(); ++i)
    result.weight[i * all + inputs + i - outputs] = 1;
  return result;
}

Affine composed(const Affine& second, const Affine& first) {
  const auto product = [&](const Vector& left, const Vector& right) {
    const auto rows = static_cast<std::size_t>(second.outputs),
               cols = static_cast<std::size_t>(first.inputs),
               inner = static_cast<std::size_t>(first.outputs);
    Vector result(rows * cols);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < inner; ++k)
        for (std::size_t j = 0; j < cols; ++j)
          result[i * cols + j] += left[i * inner + k] * right[k * cols + j];
    return result;
  };
  const Vector left = weight_sizes(second);
  const Affine of_sizes{second.outputs, second.inputs, left, bias_sizes(second)};
  return {second.outputs,
          first.inputs,
          product(second.weight, first.weight),
          affine_at(second, first.bias),
          product(left, weight_sizes(first)),
          affine_at(of_sizes, bias_sizes(first))};
}

bool large_enough(const Affine& map) {
  const Vector of_weights = weight_sizes(map);
  const auto cols = static_cast<std::size_t>(map.inputs);
  for (std::size_t i = 0; i < map.bias.size(); ++i) {
    const double size = length_of(&of_weights[i * cols], cols);
    if (size != 0 && size < kLeastSize) return false;
  }
  return true;
}

bool large_enough(const Affine& made, const Affine& second, const Affine& first) {
  const Vector of_first = weight_sizes(first), of_made = weight_sizes(made);
  const auto inner = static_cast<std::size_t>(second.inputs),
             cols = static_cast<std::size_t>(first.inputs);
  std::vector<bool> there(inner);
  for (std::size_t k = 0; k < inner; ++k) there[k] = length_of(&of_first[k * cols], cols) > 0;
  for (std::size_t i = 0; i < made.bias.size(); ++i) {
    if (!(length_of(&of_made[i * cols], cols) < kLeastSize)) continue;
    for (std::size_t k = 0; k < inner; ++k)
      if (there[k] && second.weight[i * inner + k] != 0) return false;
  }
  return true;
}

bool cancels(const Affine& map) {
  constexpr double kMost = 100;
  const Vector summed = output_sizes(map);
  const auto cols = static_cast<std::size_t>(map.inputs);
  for (std::size_t i = 0; i < summed.size(); ++i)
    if (summed[i] > kMost * (length_of(&map.weight[i * cols], cols) + std::abs(map.bias[i])))
      return true;
  return false;
}

}  // namespace keel
