#include "block_paths.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "matrices.h"

namespace keel {
namespace {

using namespace matrix;
using Vector = std::vector<double>;

double number_or_size(double value, bool sizes) { return sizes ? std::abs(value) : value; }

}  // namespace

Vector through_path(const BlockMaps& block, std::size_t heads, std::size_t path, const Vector& v,
                    bool sizes) {
  const auto number = [sizes](double value) { return number_or_size(value, sizes); };
  const std::size_t width = v.size(), head_width = width / heads;
  Vector result(width);
  if (path == 0) {
    for (std::size_t i = 0; i < width; ++i) result[i] = number(v[i]);
    return result;
  }
  for (std::size_t c = (path - 1) * head_width; c < path * head_width; ++c) {
    double value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value += number(block.attended.row(2 * width + c)[i]) * number(v[i]);
    for (std::size_t i = 0; i < width; ++i) result[i] += number(block.taken.row(i)[c]) * value;
  }
  return result;
}

Vector attention_bias(const BlockMaps& block, bool sizes) {
  const auto number = [sizes](double value) { return number_or_size(value, sizes); };
  const std::size_t width = block.taken.bias.size();
  Vector result(width);
  for (std::size_t i = 0; i < width; ++i) {
    result[i] += number(block.taken.bias[i]);
    for (std::size_t c = 0; c < width; ++c)
      result[i] += number(block.taken.row(i)[c]) * number(block.attended.bias[2 * width + c]);
  }
  return result;
}

Vector outputs_of(const DenseMap& map, const Vector& inputs) {
  Vector result = map.bias;
  for (std::size_t j = 0; j < result.size(); ++j)
    result[j] += dot(inputs.data(), map.row(j), inputs.size());
  return result;
}

Vector output_sizes(const DenseMap& map, const Vector& input_sizes) {
  Vector result(map.bias.size());
  for (std::size_t j = 0; j < result.size(); ++j) {
    result[j] = std::abs(map.bias[j]);
    for (std::size_t i = 0; i < input_sizes.size(); ++i)
      result[j] += std::abs(map.row(j)[i]) * input_sizes[i] + kNothing;
  }
  return result;
}

BlockPaths::BlockPaths(const EmbeddingImage& image, const BlockMaps& block, std::size_t heads)
    : paths(heads + 1),
      each(1 + image.places()),
      state(attention_bias(block, false)),
      state_size(attention_bias(block, true)) {
  const std::size_t width = image.shift().size(), units = block.hidden.bias.size();
  for (std::size_t path = 0; path < paths; ++path) {
    add(state, through_path(block, heads, path, image.shift(), false));
    add(state_size, through_path(block, heads, path, image.shift(), true));
    Vector largest(width);
    for (std::size_t k = 0; k < each; ++k) {
      const Vector& v = k == 0 ? image.along_x() : image.across(k - 1);
      const Vector made = through_path(block, heads, path, v, false);
      of_state.insert(of_state.end(), made.begin(), made.end());
      const Vector size = through_path(block, heads, path, v, true);
      if (k == 0)
        add(state_size, size);
      else
        for (std::size_t i = 0; i < width; ++i) largest[i] = std::max(largest[i], size[i]);
    }
    add(state_size, largest);
  }
  of_units = Tensor::empty({count(rows()), count(units)}, DType::f64);
  for (std::size_t row = 0; row < rows(); ++row)
    for (std::size_t j = 0; j < units; ++j)
      of_units.data<double>()[row * units + j] =
          dot(&of_state[row * width], block.hidden.row(j), width);
  middle = outputs_of(block.hidden, state);
  unit_size = output_sizes(block.hidden, state_size);
}

}  // namespace keel
