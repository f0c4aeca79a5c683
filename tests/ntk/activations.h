// Every activation there is, for tests of what is known of each.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "../../nn/spec.h"

namespace keel {

/// All that a SPEC has.
inline constexpr std::array kWords = {LayerKind::relu,      LayerKind::gelu, LayerKind::silu,
                                      LayerKind::leakyrelu, LayerKind::tanh, LayerKind::sigmoid,
                                      LayerKind::softplus,  LayerKind::elu,  LayerKind::selu,
                                      LayerKind::prelu};

/// All but the last, prelu, whose slopes are a net's.
inline constexpr std::span kActivations = std::span(kWords).first<kWords.size() - 1>();

/// Those that are no two lines, elu by several alphas, silu by several betas.
inline const std::vector<LayerSpec> kCurved = {{.kind = LayerKind::gelu},
                                               {.kind = LayerKind::gelu, .by_tanh = true},
                                               {.kind = LayerKind::silu},
                                               {.kind = LayerKind::silu, .beta = 0.2},
                                               {.kind = LayerKind::silu, .beta = 1.702},
                                               {.kind = LayerKind::silu, .beta = 8},
                                               {.kind = LayerKind::tanh},
                                               {.kind = LayerKind::sigmoid},
                                               {.kind = LayerKind::softplus},
                                               {.kind = LayerKind::elu},
                                               {.kind = LayerKind::elu, .alpha = 0},
                                               {.kind = LayerKind::elu, .alpha = 0.2},
                                               {.kind = LayerKind::elu, .alpha = 5},
                                               {.kind = LayerKind::selu}};

}  // namespace keel
