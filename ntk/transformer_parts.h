// TransformerParts: the parameters of one transformer in double, by what they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "../nn/transformer.h"
#include "norm_map.h"

namespace keel {

struct TransformerParts {
  struct Embedding {
    std::vector<double> weight, bias, places;
    std::optional<NormMap> norm;
  };
  struct Block {
    BlockMaps maps;
    std::optional<NormMap> attention_norm, hidden_norm;  // both or none
  };
  std::size_t heads;
  Embedding embedding{};
  std::vector<Block> blocks{};
  std::optional<NormMap> last_norm{};
  DenseMap last{};
};

/// Of a member. Throws keel::Error, by the name of transformer_bound(), for a number that is not
/// finite.
TransformerParts parts_of(const Transformer& net, std::int64_t member);

/// d . what attention adds, taken back to what attention sees: to `most` what biases make, and a
/// direction for each head. A head of d is a mean, with some weights, of values at several places:
/// of a linear function of one it is at most the largest, whatever queries and keys are.
std::vector<Direction> through_heads(const BlockMaps& block, std::size_t heads, const Direction& d,
                                     Most& most);

/// d . back(units), taken back to the units; without what the bias makes.
Direction through_back(const DenseMap& back, const Direction& d);

}  // namespace keel
