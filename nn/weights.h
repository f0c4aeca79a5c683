// Weights of a net to and from .safetensors files, named as PyTorch names them.
#pragma once

#include <map>
#include <string>

#include "net.h"

namespace keel {

/// The state_dict of a torch.nn.Sequential of the same layers: `<i>.weight` [out, in] and
/// `<i>.bias`, i counting every word of the SPEC from 0; the gain of a layernorm is its `weight`.
/// Of an ensemble, all members in one file, named `member<s>.<i>.weight`. Parameters are written as
/// a net in the standard parameterisation has them, so that PyTorch computes the same function.
/// `notes` go to the file's metadata.
void save_weights(const Net& net, const std::string& path,
                  const std::map<std::string, std::string>& notes = {});

/// Copies a file's weights (F32 or F64, converted to the net's dtype) into `net`, of the same
/// layers and members. Throws keel::Error naming the tensor that is missing, has another shape, is
/// not wanted, or holds a number that is not finite, or both nets, where save_weights() wrote down
/// that the file's is another; the net is then unchanged.
void load_weights(Net& net, const std::string& path);

}  // namespace keel
