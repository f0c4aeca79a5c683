// The net of a weights file as certify takes it: keel's own, or one from PyTorch.
#pragma once

#include <string>
#include <vector>

#include "../nn/net.h"
#include "../nn/safetensors.h"
#include "command.h"
#include "examples.h"

namespace keel {

struct TrainedNet {
  Net net;                               ///< without its batchnorms, which its weights took in
  std::vector<std::string> zero_biases;  ///< those that the file does not have
  /// What the file has for these keys, "" for nothing: kColumnsKey, kFeaturesKey, kHeldOutKey.
  std::string columns{}, features{}, held_out{};
};

/// SPEC: what was given or, where that is "", what save_weights() wrote into the file. Throws
/// UsageError where it wrote none, and keel::Error of a checkpoint.
std::string net_of(const std::string& given, const SafeTensors& file, const std::string& path);

/// How many nets the file holds: more than one where keel trained an ensemble.
std::int64_t members_of(const SafeTensors& file);

/// Of an ensemble's file, net s as a file of its own. Throws keel::Error where there is none.
SafeTensors member_of(const SafeTensors& file, std::int64_t s, const std::string& path);

/// Of this SPEC, batchnorms as they are in evaluation, in float64 on the context's device; how
/// many features it takes, the file says. `modules` as in LoadOptions. Biases that the file does
/// not have are zeros, gains ones, with a note; another, of a file of Flax's or Keras's, says where
/// their layers' defaults are not SPEC's. `path`, where `file` was read, is for messages. Throws
/// keel::Error as load_weights(), for an ensemble, and where keel trained the net in other units
/// than `standardise` ("" for any).
TrainedNet trained_net(const Spec& spec, const SafeTensors& file, const std::string& path,
                       const std::vector<std::string>& modules, const std::string& standardise,
                       const Context& context);

/// The same of every net of the file, one or more: what is noted of one is so of all.
std::vector<TrainedNet> trained_nets(const Spec& spec, const SafeTensors& file,
                                     const std::string& path,
                                     const std::vector<std::string>& modules,
                                     const std::string& standardise, const Context& context);

/// Of nets of one SPEC an ensemble, in their order; of one net a copy.
Net ensemble_of(const std::vector<TrainedNet>& nets);

}  // namespace keel
