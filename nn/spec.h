// The SPEC text of a net: "dense(128) layernorm relu dense(128) relu dense(1)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

enum class LayerKind { dense, relu, gelu, silu, layernorm };

/// One word of a SPEC. Fields that its kind does not have keep their defaults.
struct LayerSpec {
  LayerKind kind = LayerKind::relu;
  std::int64_t width = 0;  ///< dense: outputs
  bool affine = true;      ///< layernorm: trainable gain and bias
  double eps = 1e-5;       ///< layernorm: added to the variance
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

using Spec = std::vector<LayerSpec>;

/// Words dense(width), relu, gelu, silu and layernorm or layernorm(affine=0|1, eps=value),
/// separated by blanks; the first and the last are dense. Throws keel::Error that quotes the wrong
/// word.
Spec parse_spec(std::string_view text);

/// The shortest text that parses to `spec`.
std::string spec_text(const Spec& spec);

}  // namespace keel
