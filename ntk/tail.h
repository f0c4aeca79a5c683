// What a net computes from the output of a Layer Norm or RMSNorm on, or of a tanh or sigmoid.
#pragma once

#include <cstdint>
#include <vector>

#include "activation.h"
#include "affine.h"
#include "norm_set.h"

namespace keel {

/// f = affine maps with an activation between each two, of u in `set`: the first takes u to the
/// first activation's input, or to f. Dense layers with no activation between are one affine map;
/// two activations in a row have the identity between them. What a residual adds to passes by the
/// activations within it. Of a box the first activation is the identity, and what is before it
/// takes no u.
struct Tail {
  std::int64_t word = 0;  ///< of the norm, tanh or sigmoid in the SPEC, counted from 1; 0: of x
  LayerKind kind = LayerKind::layernorm;  ///< layernorm, rmsnorm, tanh or sigmoid, if it has a word
  NormSet set{};
  bool direct = false;           ///< unit i of the first map is unit i of the norm, gain and bias
  std::vector<Affine> affine{};  ///< one more than activations
  std::vector<LayerActivation> activations{};
  std::vector<std::size_t> kept{};  ///< of each: how many units, the last ones, pass it by
  void push_back(const LayerActivation& phi, std::size_t pass = 0) {
    activations.push_back(phi);
    kept.push_back(pass);
  }
};

/// f at u, or of a box at the first units, [outputs].
std::vector<double> tail_at(const Tail& tail, const std::vector<double>& u);

}  // namespace keel
