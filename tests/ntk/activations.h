// Every activation there is, for tests of what is known of each.
#pragma once

#include <vector>

#include "../../nn/spec.h"

namespace keel {

/// All but prelu, whose slopes are a net's.
inline constexpr LayerKind kActivations[] = {
    LayerKind::relu,    LayerKind::gelu,     LayerKind::silu, LayerKind::leakyrelu, LayerKind::tanh,
    LayerKind::sigmoid, LayerKind::softplus, LayerKind::elu,  LayerKind::selu};

/// All that a SPEC has.
inline constexpr LayerKind kWords[] = {LayerKind::relu,      LayerKind::gelu, LayerKind::silu,
                                       LayerKind::leakyrelu, LayerKind::tanh, LayerKind::sigmoid,
                                       LayerKind::softplus,  LayerKind::elu,  LayerKind::selu,
                                       LayerKind::prelu};

/// Those that are no two lines, elu by several alphas.
inline const std::vector<LayerSpec> kCurved = {{.kind = LayerKind::gelu},
                                               {.kind = LayerKind::silu},
                                               {.kind = LayerKind::tanh},
                                               {.kind = LayerKind::sigmoid},
                                               {.kind = LayerKind::softplus},
                                               {.kind = LayerKind::elu},
                                               {.kind = LayerKind::elu, .alpha = 0},
                                               {.kind = LayerKind::elu, .alpha = 0.2},
                                               {.kind = LayerKind::elu, .alpha = 5},
                                               {.kind = LayerKind::selu}};

}  // namespace keel
