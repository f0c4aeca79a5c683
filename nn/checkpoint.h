// Checkpoint: everything a training needs to go on, in one .safetensors file.
#pragma once

#include <string>
#include <vector>

#include "safetensors.h"
#include "train_step.h"

namespace keel {

struct Checkpoint {
  std::string net, data,
      options;        ///< what it belongs to, in words; data: fingerprints of inputs-targets
  Tensor parameters;  ///< flat
  std::vector<Tensor> moments;     ///< flat
  Tensor losses;                   ///< float64 [S, epochs]: at least those that are done
  std::vector<std::int64_t> done;  ///< epochs, by member
  double seconds = 0;              ///< that they took
};

/// SPEC, input width, parameterisation, scales, seeds, dtype and kind of device.
std::string net_text(const Net& net);

/// Everything but the number of epochs: a finished training may be resumed for more.
std::string training_text(const StepOptions& options);

/// 16 hexadecimal digits that depend on shape, dtype and every bit (FNV-1a, 64 bits).
std::string fingerprint(const Tensor& x);

/// Whether that is of a file of write_checkpoint(), by its metadata.
bool is_checkpoint(const SafeTensors& file);

/// Throws keel::Error where a file is at `path` that write_checkpoint() did not write.
void check_no_other_file(const std::string& path);

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Fills the tensors, `done` and `seconds` of `into`, whose texts say what is wanted. Throws
/// keel::Error where the file is damaged, belongs to something else, or has more epochs than there
/// is room for.
void read_checkpoint(const std::string& path, Checkpoint& into);

}  // namespace keel
