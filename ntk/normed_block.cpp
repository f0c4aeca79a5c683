#include "normed_block.h"

#include <cmath>

#include "interval.h"
#include "net_bound.h"

namespace keel {
namespace {

// Of of_units . relu(hidden(norm(h))), by the bound of that as a net.
Range range_of_units(const NormMap& norm, const DenseMap& hidden, const Direction& of_units) {
  const auto width = static_cast<std::int64_t>(norm.gain.size());
  const std::size_t units = of_units.w.size();
  for (const double w : of_units.w)
    // Past double's range: for the caller to say.
    if (!std::isfinite(w)) return {{-kInfinity, kInfinity}, 0};
  // A SPEC begins with a dense layer. What it makes does not matter: of what the norm is given
  // nothing is used.
  const Net net(fmt::format("dense({}) {} dense({}) relu dense(1)", width,
                            norm.centred ? "layernorm" : "rmsnorm", units),
                1, {.dtype = DType::f64});
  std::size_t p = net.first_parameter(1);
  const auto fill = [&](const std::vector<double>& values) {
    const Tensor view = net.layout().view(net.flat(), p++);
    copy(view, Tensor::from(values, view.shape()));
  };
  fill(norm.gain);
  if (norm.centred) fill(norm.shift);
  fill(hidden.weight);
  fill(hidden.bias);
  fill(of_units.w);
  fill({0});
  Range range{bound_net(net, {.narrow = false}).outputs[0], 0};
  // What of_units may have lost is a part of its size; a unit's own size is more than it can be.
  for (std::size_t j = 0; j < units; ++j) {
    Direction of_unit(norm.gain.size());
    of_unit.add(1, 1, hidden.row(j));
    range.size +=
        of_units.size[j] * (most_behind(norm, of_unit).size + std::abs(hidden.bias[j])) + kNothing;
  }
  return range;
}

}  // namespace

Range range_added(const TransformerParts::Block& block, std::size_t heads, const Direction& d) {
  Range range =
      range_of_units(*block.hidden_norm, block.maps.hidden, through_back(block.maps.back, d));
  range += along(d, block.maps.back.bias.data());
  Most of_biases;
  for (const Direction& of_head : through_heads(block.maps, heads, d, of_biases)) {
    range += along(of_head, block.attention_norm->shift.data());
    const Most away = most_of_normed(*block.attention_norm, of_head);
    range += Range{{-away.value, away.value}, away.size};
  }
  range += of_biases;
  return range;
}

}  // namespace keel
