// TransformerNorms: where the norms of a transformer stand, and of which kind they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keel {

/// Each has a gain, and a Layer Norm a bias.
struct TransformerNorms {
  bool embedding = true;  ///< behind the embedding
  /// In each block one ahead of attention and one ahead of the ReLU layer ("pre-LN", Xiong et al.,
  /// On Layer Normalization in the Transformer Architecture, 2020): what passes a block by passes
  /// them by.
  bool blocks = false;
  bool last = false;    ///< ahead of the last layer
  bool centred = true;  ///< Layer Norm; not: RMSNorm, which takes no mean away and has no bias

  /// Whether there is one that nothing passes by: then no prediction can leave some interval.
  bool bound_all() const { return embedding || last; }
  /// layernorm or rmsnorm.
  const char* kind() const { return centred ? "layernorm" : "rmsnorm"; }
  bool operator==(const TransformerNorms&) const = default;
};

/// "none", or those of "embedding", "blocks", "last" that there are, with commas between.
std::string places_of(const TransformerNorms& norms);

/// Layer Norms at such places, in any order; nothing for another text.
std::optional<TransformerNorms> norms_at(std::string_view places);

/// What such a text may be, for messages.
inline constexpr const char* kNormPlaces =
    "none, or some of embedding, blocks, last with commas between";

}  // namespace keel
