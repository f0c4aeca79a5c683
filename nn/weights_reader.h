// WeightsReader: a file of weights, tensor by tensor, and what to say of those that do not fit.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.h"
#include "spec.h"

namespace keel {

inline constexpr const char* kNetKey = "keel.net";  ///< metadata of save_weights(): a SPEC

/// A file's tensors by the names of save_weights(): what all of them begin with ahead of a layer's
/// number, "net." in `net.0.weight`, is left out. With `modules` (LoadOptions) all names are whole;
/// keel's own files, whose names are numbers, are then refused. `path` is for messages.
SafeTensors by_layer_names(SafeTensors file, const std::string& path,
                           const std::vector<std::string>& modules);

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
/// `norm.beta`; and of a Batch Norm `norm.mean`, which may be in `batch_stats` where the others are
/// in `params`, or `norm.moving_mean`, and the like. There with a / for the last dot, too.
ParameterInFile find_parameter(const SafeTensors& content, const std::string& name);

/// "fc" of "fc.weight" and "fc/kernel".
std::string module_of(const std::string& name);

/// What messages say of a file's names: the first of them, quoted.
std::string quoted(const std::set<std::string>& names);

/// Throws keel::Error that names the first element of `name` that is no finite number.
void check_finite_weights(const Tensor& values, const std::string& path, const std::string& name);

/// The tensors of the file that was read from `path`, and the names that nobody has taken yet.
/// `path` and `spec` must outlive it.
class WeightsReader {
 public:
  static constexpr std::string_view kRunningMean = ".running_mean";

  WeightsReader(const SafeTensors& file, const std::string& path, const Spec& spec,
                const std::vector<std::string>& modules)
      : path_(path),
        spec_(spec),
        by_number_(modules.empty()),
        content_(by_layer_names(file, path, modules)),
        left_(content_.names()) {}

  /// find_parameter(), as PyTorch has it, of this shape, all of it finite; else keel::Error, with
  /// what may help.
  Tensor take(const std::string& name, const Shape& shape);

  bool has(const std::string& name) const;

  /// The layer is there, and was made without a bias: save_weights() leaves none out.
  bool lacks_bias(const std::string& name) const;

  void leave(const std::string& name) { left_.erase(name); }

  /// Throws keel::Error unless all was taken, and keel wrote nothing else of what it is.
  void finish() const;

 private:
  std::string hint() const;                         // of what was not taken
  std::string hint(const std::string& name) const;  // what may help, or nothing

  const std::string& path_;
  const Spec& spec_;
  bool by_number_;
  SafeTensors content_;
  std::set<std::string> left_;
};

}  // namespace keel
