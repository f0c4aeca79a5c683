// Weights of a net to and from .safetensors files, named as PyTorch names them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net.h"
#include "safetensors.h"

namespace keel {

/// The state_dict of a torch.nn.Sequential of the same layers: `<i>.weight` [out, in] and
/// `<i>.bias`, i counting every word of the SPEC from 0; the gain of a norm, or the slopes of
/// a prelu, are its `weight`. Of an ensemble, all members in one file, named
/// `member<s>.<i>.weight`. Parameters are written as a net in the standard parameterisation has
/// them, so that PyTorch computes the same function. `notes` go to the file's metadata. Throws
/// keel::Error where the net mixes rows.
void save_weights(const Net& net, const std::string& path,
                  const std::map<std::string, std::string>& notes = {});

/// PyTorch's layers have no bias with `bias=False`: the same function as a bias of zeros, but of
/// another kernel, and another training. What save_weights() wrote lacks none. Flax's and Keras's
/// norms may have a bias without a gain, too: one of ones.
enum class MissingBias { refuse, zero };

struct LoadOptions {
  MissingBias missing_bias = MissingBias::refuse;
  /// What the file calls each layer that has weights (a batchnorm without gain and bias has running
  /// statistics), in the SPEC's order: "fc1" of `fc1.weight`. One that stands twice is shared.
  /// None: a layer's number.
  std::vector<std::string> modules = {};
  /// What the file's net is, where it has batchnorms, which the net loaded into has not: that is of
  /// without_batch_norms(spec), and takes them in, as they are in evaluation, with the file's
  /// running statistics. The net is best in float64: weights with a batchnorm in them cancel. None:
  /// the net's own SPEC.
  Spec spec = {};
};

/// What the file calls each layer of `spec`: its number, or its module, as in LoadOptions. Throws
/// keel::Error where the modules are not as many as the layers that have weights.
std::vector<std::string> layer_names(const Spec& spec, const std::vector<std::string>& modules);

/// Copies a file's tensors (WeightsReader; converted to the net's dtype) into `net`, of the same
/// layers and members; by the names of PyTorch, Flax or Keras (find_parameter()). A vector that
/// safetensors.torch.save_model() wrote once for two names is taken for both. Returns what is
/// missing, biases that became zeros and gains that became ones, named as the file names the
/// others. Throws keel::Error naming the tensor that is
/// missing, has another shape, is not wanted, or holds a number that is not finite, the batchnorm
/// that cannot be folded, or both nets, where save_weights() wrote down that the file's is another;
/// the net is then unchanged.
std::vector<std::string> load_weights(Net& net, const std::string& path,
                                      const LoadOptions& options = {});

/// Of a file that has been read; `path`, where it was, is for messages.
std::vector<std::string> load_weights(Net& net, const SafeTensors& file, const std::string& path,
                                      const LoadOptions& options = {});

}  // namespace keel
