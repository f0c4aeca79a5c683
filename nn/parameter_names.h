// What PyTorch, Flax and Keras call a layer's parameters, and where a file has them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.h"

namespace keel {

inline constexpr const char* kNetKey = "keel.net";  ///< metadata of save_weights(): a SPEC

/// Whose names a file's parameters have.
enum class Library { pytorch, flax, keras, flax_or_keras };

/// Of a file with a `kernel` Flax's or Keras's: Keras's where it has a gamma, beta or moving mean,
/// Flax's where linen's collections are named; else PyTorch's.
Library library_of(const SafeTensors& content);

/// Where a file has what PyTorch calls `fc.weight` or `norm.bias`; tensor: null where it has not.
struct ParameterInFile {
  std::string name;
  const Tensor* tensor = nullptr;
  bool transposed = false;

  /// A shape of PyTorch's, as the file has it.
  Shape shape_of(const Shape& shape) const;
};

/// By that name, or by that of a vector that safetensors.torch.save_model() says it shares, or as
/// Flax and Keras call it: `fc.kernel`, which is [in, out], `norm.scale` or `norm.gamma`,
/// `norm.beta`, a PReLU's `negative_slope` or `alpha`; and of a Batch Norm `norm.mean`, which may
/// be in `batch_stats` where the others are in `params`, or `norm.moving_mean`, and the like. There
/// with a / for the last dot, too.
ParameterInFile find_parameter(const SafeTensors& content, const std::string& name);

/// "weight" of "fc.weight" and "fc/weight".
std::string_view own_name(std::string_view name);

/// "fc" of "fc.weight" and "fc/kernel".
std::string module_of(const std::string& name);

/// "fc/bias" for "fc.bias" where the file has other parameters of that module behind a slash.
std::string as_in_file(const SafeTensors& content, const std::string& name);

/// A file's tensors, but for what Keras keeps beside the parameters: the count of what a
/// Normalization has seen, the state of a Dropout. Throws keel::Error as read_safetensors().
SafeTensors read_weights(const std::string& path);

/// What messages say of a file's names: the first of them, quoted, dense_2 ahead of dense_10.
std::string quoted(const std::set<std::string>& names, std::size_t listed = 30);

/// A file's tensors by the names of save_weights(): what all of them begin with ahead of a layer's
/// number, "net." in `net.0.weight`, is left out. With `modules` (LoadOptions) all names are whole;
/// keel's own files, whose names are numbers, are then refused. `path` is for messages.
SafeTensors by_layer_names(SafeTensors file, const std::string& path,
                           const std::vector<std::string>& modules);

}  // namespace keel
