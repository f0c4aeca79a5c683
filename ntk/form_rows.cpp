#include "form_rows.h"

#include <algorithm>
#include <cmath>

#include "matrices.h"

namespace keel {
namespace {

using namespace matrix;
using Vector = std::vector<double>;

}  // namespace

bool FormRows::fits(const BlockPaths& paths, std::size_t blocks) {
  constexpr std::size_t kMostRows = 3000;
  return paths.rows() * (blocks == 2 ? paths.paths : 1) <= kMostRows;
}

FormRows::FormRows(const BlockPaths& of_first, std::span<const BlockMaps> blocks, std::size_t heads)
    : last(blocks.back()),
      width(of_first.state.size()),
      paths(of_first.paths),
      each(of_first.each),
      state(of_first.state),
      state_size(of_first.state_size),
      of_state(Tensor::from(of_first.of_state, {count(of_first.rows()), count(width)})) {
  if (blocks.size() == 2) add_second(of_first, blocks.front(), heads);
  last_middle = outputs_of(last.hidden, state);
  last_size = output_sizes(last.hidden, state_size);
}

void FormRows::add_second(const BlockPaths& of_first, const BlockMaps& first, std::size_t heads) {
  // Behind the first block, but for e.
  Vector middle = state, size = state_size, rows = of_first.of_state, of_e;
  add(middle, first.back.bias);
  for (std::size_t i = 0; i < width; ++i) size[i] += std::abs(first.back.bias[i]);
  std::vector<std::size_t> units;
  for (std::size_t j = 0; j < first.hidden.bias.size(); ++j) {
    const auto [low, high] = first.units[j];
    const double share = low >= 0 ? 1 : high <= 0 ? 0 : 0.5;  // of z that the relu is
    const bool has_kink = low < 0 && high > 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double back = first.back.row(i)[j];
      middle[i] += share * of_first.middle[j] * back;
      size[i] += of_first.unit_size[j] * std::abs(back) + kNothing;
      for (std::size_t row = 0; row < of_first.rows(); ++row)
        rows[row * width + i] += share * of_first.units_of(row)[j] * back;
      if (has_kink) of_e.push_back(back);
    }
    if (!has_kink) continue;
    units.push_back(j);
    z_middle.push_back(of_first.middle[j]);
    z_size.push_back(of_first.unit_size[j]);
    bowl.push_back(2 / (high - low));
    tilt.push_back(-(high + low) / (high - low));
  }
  of_z = zeros(of_first.rows(), units.size());
  for (std::size_t row = 0; row < of_first.rows(); ++row)
    for (std::size_t j = 0; j < units.size(); ++j)
      of_z.data<double>()[row * units.size() + j] = of_first.units_of(row)[units[j]];

  copies = heads + 1;
  paths = copies * of_first.paths;
  state = attention_bias(last, false);
  state_size = attention_bias(last, true);
  of_state = zeros(paths * each, width);
  kinks = zeros(copies * units.size(), width);
  for (std::size_t copy = 0; copy < copies; ++copy) {
    add(state, through_path(last, heads, copy, middle, false));
    add(state_size, through_path(last, heads, copy, size, true));
    const auto through = [&](const Vector& all, const Tensor& into) {
      const std::size_t n = all.size() / width;
      for (std::size_t row = 0; row < n; ++row) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(row * width);
        const Vector made = through_path(last, heads, copy, Vector(at, at + count(width)), false);
        std::copy(made.begin(), made.end(), into.data<double>() + (copy * n + row) * width);
      }
    };
    through(rows, of_state);
    through(of_e, kinks);
  }
}

}  // namespace keel
