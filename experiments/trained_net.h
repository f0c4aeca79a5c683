// The net of a weights file as certify takes it: keel's own, or one from PyTorch.
#pragma once

#include <string>
#include <vector>

#include "../nn/net.h"
#include "../nn/safetensors.h"
#include "command.h"

namespace keel {

struct TrainedNet {
  Net net;                               ///< without its batchnorms, which its weights took in
  std::vector<std::string> zero_biases;  ///< those that the file does not have
  std::string columns;                   ///< what the file has for kColumnsKey; "" for nothing
};

/// Of the file of a larger net, what belongs to `modules`, which are its tail (LoadOptions). Throws
/// keel::Error as read_safetensors().
SafeTensors read_tail(const std::string& path, const std::vector<std::string>& modules);

/// Of this SPEC, batchnorms as they are in evaluation, in float64 on the context's device; how
/// many features it takes, the file says. `modules` as in LoadOptions. Biases that the file does
/// not have are zeros, with a note. `path`, where `file` was read, is for messages. Throws
/// keel::Error as load_weights(), for an ensemble, and where keel trained the net in other units
/// than `standardise` ("" for any).
TrainedNet trained_net(const Spec& spec, const SafeTensors& file, const std::string& path,
                       const std::vector<std::string>& modules, const std::string& standardise,
                       const Context& context);

}  // namespace keel
