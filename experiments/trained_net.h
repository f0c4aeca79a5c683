// The net of a weights file as certify takes it: keel's own, or one from PyTorch.
#pragma once

#include <string>

#include "../nn/net.h"
#include "command.h"

namespace keel {

/// Of SPEC `net`, in float64 on the context's device; how many features it takes, the file says.
/// Biases that the file does not have are zeros, with a note. Throws keel::Error as load_weights(),
/// for an ensemble, and where keel trained the net in other units than `standardise` ("" for any).
Net trained_net(const std::string& net, const std::string& weights, const std::string& standardise,
                const Context& context);

}  // namespace keel
