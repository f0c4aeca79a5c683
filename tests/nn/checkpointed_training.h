// What tests of checkpoints train: a net so small that it is soon done.
#pragma once

#include "../../core/random.h"

namespace keel {

inline constexpr const char* kCheckpointedSpec = "dense(17) layernorm relu dense(1)";

inline Tensor inputs() { return normal({30, 2}, {1, 0}); }
inline Tensor targets() { return normal({30, 1}, {1, 1}); }

}  // namespace keel
