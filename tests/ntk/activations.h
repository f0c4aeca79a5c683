// Every activation there is, for tests of what is known of each.
#pragma once

#include "../../nn/spec.h"

namespace keel {

inline constexpr LayerKind kActivations[] = {
    LayerKind::relu,    LayerKind::gelu,     LayerKind::silu, LayerKind::leakyrelu, LayerKind::tanh,
    LayerKind::sigmoid, LayerKind::softplus, LayerKind::elu,  LayerKind::selu};

}  // namespace keel
