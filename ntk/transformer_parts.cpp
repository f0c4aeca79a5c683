#include "transformer_parts.h"

#include <cmath>
#include <utility>

namespace keel {
namespace {

/// Hands out a member's parameters in layout order.
class Reader {
 public:
  Reader(const Transformer& net, std::int64_t member) : net_(net), member_(member) {}

  std::vector<double> next() {
    std::vector<double> values =
        net_.layout().member_view(net_.flat(), at_, member_).to_vector<double>();
    for (double value : values)
      check(std::isfinite(value), "transformer_bound", "got {} in {}, wanted finite numbers", value,
            net_.layout().entries()[at_].name);
    ++at_;
    return values;
  }
  DenseMap dense() {
    std::vector<double> weight = next();
    return {std::move(weight), next()};
  }
  std::optional<NormMap> norm(bool there) {
    if (!there) return {};
    const bool centred = net_.options().norms.centred;
    std::vector<double> gain = next();
    std::vector<double> shift = centred ? next() : std::vector<double>(gain.size());
    return NormMap{std::move(gain), std::move(shift), centred};
  }

 private:
  const Transformer& net_;
  std::int64_t member_;
  std::size_t at_ = 0;
};

}  // namespace

TransformerParts parts_of(const Transformer& net, std::int64_t member) {
  const TransformerOptions& options = net.options();
  Reader reader(net, member);
  TransformerParts parts{.heads = static_cast<std::size_t>(options.heads)};
  parts.embedding.weight = reader.next();
  parts.embedding.bias = reader.next();
  parts.embedding.places = reader.next();
  parts.embedding.norm = reader.norm(options.norms.embedding);
  for (std::int64_t b = 0; b < options.blocks; ++b) {
    TransformerParts::Block block;
    block.attention_norm = reader.norm(options.norms.blocks);
    block.maps.attended = reader.dense();
    block.maps.taken = reader.dense();
    block.hidden_norm = reader.norm(options.norms.blocks);
    block.maps.hidden = reader.dense();
    block.maps.back = reader.dense();
    parts.blocks.push_back(std::move(block));
  }
  parts.last_norm = reader.norm(options.norms.last);
  parts.last = reader.dense();
  return parts;
}

std::vector<Direction> through_heads(const BlockMaps& block, std::size_t heads, const Direction& d,
                                     Most& most) {
  const std::size_t width = d.w.size(), head_width = width / heads;
  most += along(d, block.taken.bias.data());
  Direction of_values(width);
  for (std::size_t i = 0; i < width; ++i) of_values.add(d.w[i], d.size[i], block.taken.row(i));
  std::vector<Direction> of_heads;
  for (std::size_t head = 0; head < heads; ++head) {
    Direction& of_head = of_heads.emplace_back(width);
    for (std::size_t c = head * head_width; c < (head + 1) * head_width; ++c) {
      const std::size_t value = 2 * width + c;
      of_head.add(of_values.w[c], of_values.size[c], block.attended.row(value));
      most += {of_values.w[c] * block.attended.bias[value],
               of_values.size[c] * std::abs(block.attended.bias[value])};
    }
  }
  return of_heads;
}

Direction through_back(const DenseMap& back, const Direction& d) {
  Direction of_units(back.inputs());
  for (std::size_t i = 0; i < d.w.size(); ++i) of_units.add(d.w[i], d.size[i], back.row(i));
  return of_units;
}

}  // namespace keel
